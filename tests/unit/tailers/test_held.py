"""Held positions: none lost, none twice, order kept within a kind, nothing before its time."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell
from tailrace.model.workload import Kind
from tailrace.tailers.rules.held import HeldPositions

KINDS = [Kind("f", 0, "", tenant) for tenant in "abc"] + [Kind("g", 1)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "later", "take", "ripen"]),
        st.sampled_from(KINDS),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=60,
)


def _open(kind):
    return False


@given(STEPS, st.sets(st.sampled_from(KINDS)))
def test_nothing_is_lost_or_early(steps, closed):
    held, ready, later, now, next_position = HeldPositions(), {}, {}, 0.0, 0
    for step, kind, count, time in steps:
        if step == "hold":
            held.hold(kind, range(next_position, next_position + count))
            ready.update(dict.fromkeys(range(next_position, next_position + count), kind))
            next_position += count
        elif step == "later":
            held.hold(kind, [next_position], now + time + 1)
            later[next_position] = (now + time + 1, kind)
            next_position += 1
        elif step == "ripen":
            now += time
            ripe = {position: kind for position, (due, kind) in later.items() if due <= now}
            assert set(held.ripen(now)) == ripe.keys()
            ready.update(ripe)
            later = {position: one for position, one in later.items() if one[0] > now}
        else:
            cell = Cell(kind.function, kind.priority)
            mine = {p for p, k in ready.items() if (k.function, k.priority) == cell and k not in closed}
            taken = held.take(cell, count, closed.__contains__)
            assert len(taken) == min(count, len(mine)) and set(taken) <= mine and len(set(taken)) == len(taken)
            for position in taken:
                del ready[position]
        assert len(held) == len(ready) + len(later)
        assert held.next_time == min((due for due, _ in later.values()), default=None)
        assert sum(held.counts().values()) == len(held)


def test_kinds_take_turns_and_keep_their_order():
    held = HeldPositions()
    for kind, start in ((KINDS[0], 0), (KINDS[1], 100)):
        held.hold(kind, range(start, start + 10))
    assert held.take(Cell("f", 0), 4, _open) == [0, 1, 100, 101]
    assert held.take(Cell("f", 0), 100, _open)[:8] == list(range(2, 10))
    assert list(held.cells()) == []


def test_a_new_priority_moves_everything_to_its_cell():
    held = HeldPositions()
    held.hold(Kind("f", 2), [1, 2])
    held.hold(Kind("f", 2), [3], 5.0)
    held.rename(lambda kind: kind._replace(priority=0))
    held.ripen(5.0)
    assert list(held.cells()) == [Cell("f", 0)] and held.take(Cell("f", 0), 9, _open) == [1, 2, 3]


def test_what_was_lost_leaves_first_whenever_its_time_comes():
    held, kind = HeldPositions(), Kind("f", 0)
    held.hold(kind, [5, 6])
    held.hold(kind, [2], 1.0, first=True)
    held.hold(kind, [7], 1.0)
    held.hold(kind, [3], first=True)
    assert held.take(Cell("f", 0), 1, _open) == [3]
    held.ripen(1.0)
    assert held.take(Cell("f", 0), 9, _open) == [2, 5, 6, 7]
