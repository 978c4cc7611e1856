"""The look-ahead: urgent items first of those that wait, keys by their most urgent item, the frontier behind all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.model.audit import Fate
from tailrace.model.demand import Cell
from tailrace.model.workload import Kind
from tailrace.sdk.source import StreamBatch
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.partition import Partition
from tailrace.tailers.rules.look_ahead import LookAhead
from tailrace.tailers.rules.order import Order

CELLS = [Cell(function, priority) for function in "fg" for priority in range(4)]
COUNTS = st.dictionaries(st.sampled_from(CELLS), st.integers(0, 50))


def _open(kind):
    return False


@given(COUNTS, COUNTS, st.integers(0, 120))
def test_turns_give_what_there_is_and_the_urgent_ones_first(waiting, rooms, total):
    def room(cell):
        return rooms.get(cell, 0)

    turns = LookAhead().turns(waiting, room, total)
    able = {cell: min(count, room(cell)) for cell, count in waiting.items()}
    assert all(0 < turn <= able[cell] for cell, turn in turns.items())
    assert sum(turns.values()) == min(total, sum(able.values())), "nothing is kept back"
    assert list(turns) == sorted(turns, key=lambda cell: cell.priority)
    lowest = max((cell.priority for cell, count in able.items() if count), default=0)
    for cell in turns:
        late = [other for other in able if other.priority < cell.priority and able[other] > turns.get(other, 0)]
        assert not late or (cell.priority == lowest and turns[cell] <= max(1, total // 20))


def test_the_lowest_level_never_starves():
    look_ahead, got = LookAhead(), {0: 0, 3: 0}
    for _ in range(100):
        turns = look_ahead.turns({Cell("f", 0): 1000, Cell("f", 3): 1000}, lambda cell: 1000, 4)
        assert sum(turns.values()) == 4
        for cell, turn in turns.items():
            got[cell.priority] += turn
    assert got == {0: 380, 3: 20}, "a twentieth goes to the lowest level"


def test_cells_of_one_level_share_evenly():
    waiting = {Cell("f", 1): 100, Cell("g", 1): 100, Cell("h", 1): 2, Cell("f", 3): 0}
    turns = LookAhead().turns(waiting, lambda cell: 100, 20)
    assert turns == {Cell("f", 1): 9, Cell("g", 1): 9, Cell("h", 1): 2}


@given(COUNTS, COUNTS, COUNTS, st.integers(0, 120))
def test_what_is_new_passes_nothing_that_waits_in_its_cell_or_is_more_urgent(new, waiting, rooms, total):
    look_ahead = LookAhead()

    def room(cell):
        return rooms.get(cell, 0)

    left = look_ahead.left_for(new, waiting, room, total)
    turns = look_ahead.turns(waiting, room, total)
    for cell, count in left.items():
        assert 0 <= count <= new[cell]
        more_urgent = sum(turn for each, turn in turns.items() if each.priority < cell.priority)
        assert not count or more_urgent + count <= total + total // 20, "but for the share of the lowest level"
        assert not count or turns.get(cell, 0) + count <= room(cell)


@pytest.mark.parametrize(("most", "waiting", "room"), [(0, 10**6, None), (100, 0, 100), (100, 94, 0), (100, 90, 10)])
def test_the_stream_is_read_on_until_so_many_wait_for_their_turn(most, waiting, room):
    assert LookAhead(most).room(waiting) == room


class Stream(RuleBasedStateMachine):
    """One partition, its order and what it holds, against the plain list of what was read. Items have keys, priorities
    and perhaps a deadline; credit comes and goes."""

    def __init__(self):
        super().__init__()
        self.part = Partition("0", Mark(0))
        self.part.order = Order(ranked=True)
        self.look_ahead = LookAhead()
        self.items = []  # (key, priority, expires at)
        self.open = set()  # positions that are not over
        self.out = set()
        self.now = 100.0

    def _line(self, position):
        """The open positions of a key, in order."""
        key = self.items[position][0]
        return [other for other in sorted(self.open) if self.items[other][0] == key] if key else [position]

    def _rank(self, position):
        return min(self.items[other][1] for other in self._line(position))

    def _may_run(self):
        return [position for position in sorted(self.open - self.out) if self._line(position)[0] == position]

    @rule(
        key=st.sampled_from(["", "a", "b", "c"]),
        priority=st.integers(0, 3),
        left=st.one_of(st.none(), st.integers(1, 30)),
    )
    def an_item_is_read(self, key, priority, left):
        position = len(self.items)
        expires_at = 0.0 if left is None else self.now + left
        self.items.append((key, priority, expires_at))
        self.open.add(position)
        columns = ([position], [self.now], [key], [()], [b""])
        self.part.read(StreamBatch("0", *columns), Fate.LOST)
        kind = Kind("f", priority)
        if not key or self.part.order.enter(key, position, kind, expires_at):
            self.part.hold(kind, position, 0.0, expires_at)
        self.part.lift()

    @rule(total=st.integers(0, 4))
    def credit_comes(self, total):
        waiting = {cell: self.part.held.ready(cell, _open) for cell in self.part.held.cells()}
        before = {position: self._rank(position) for position in self._may_run()}
        taken = []
        for cell, turn in self.look_ahead.turns(waiting, lambda cell: 100, total).items():
            some = self.part.take(cell, turn, _open)
            assert len(some) == turn
            assert all(before[position] == cell.priority for position in some), "a key is as urgent as its line"
            taken += some
        assert len(taken) == min(total, len(before)) and len(set(taken)) == len(taken)
        assert set(taken) <= before.keys(), "a key's items go one by one, in order"
        self.out.update(taken)
        if taken:
            passed = [rank for position, rank in before.items() if position not in taken]
            lowest = max(before.values())
            assert all(before[each] <= min(passed, default=3) or before[each] == lowest for each in taken)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), fails=st.booleans())
    def one_ends(self, data, fails):
        position = data.draw(st.sampled_from(sorted(self.out)))
        self.out.discard(position)
        _, priority, expires_at = self.items[position]
        if fails:
            self.part.hold(Kind("f", priority), position, 0.0, expires_at)
        else:
            self.open.discard(position)
            self.part.settle([position], Fate.SUCCEEDED)

    @rule(seconds=st.integers(0, 20))
    def time_passes(self, seconds):
        self.now += seconds
        over = set()
        while some := self.part.expire(self.now, 2):
            over.update(some)
            self.open.difference_update(some)
            self.part.settle(sorted(some), Fate.EXPIRED)
        assert all(0 < self.items[position][2] <= self.now for position in over)
        late = [position for position in self._may_run() if 0 < self.items[position][2] <= self.now]
        assert late == [], "what may run and is late is over"

    @invariant()
    def the_frontier_is_behind_everything_that_is_not_over(self):
        self.part.advance()
        assert self.part.frontier.position == min(self.open, default=len(self.items))
        assert set(self.part.held_positions()) == self.open - self.out
        assert self.part.waiting == len(self.open - self.out)
        assert sum(self.part.held.counts().values()) == len(self.part.held)


TestStream = Stream.TestCase
