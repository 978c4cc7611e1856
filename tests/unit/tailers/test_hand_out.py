"""A flight that is out: the items of it that ended, and the credit that comes back with them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell, Closed
from tailrace.model.workload import Flight, Kind
from tailrace.tailers.hand_out import HandOut

CELLS = [Cell(name, 100) for name in ("resize", "send", "index")]


def out_of(cells, clogs=None):
    kinds = [Kind(cell.function, cell.priority) for cell in cells]
    count = len(cells)
    flight = Flight(1, 7, kinds, [str(n) for n in range(count)], [b"x"] * count, [1] * count)
    return HandOut(flight, cells, Counter(cells), 0.0, None, clogs or {})


@given(
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=40).flatmap(
        lambda cells: st.tuples(
            st.just(cells), st.lists(st.lists(st.integers(0, len(cells) - 1), min_size=1, unique=True).map(sorted))
        )
    )
)
def test_what_comes_back_are_the_cells_of_what_ended_each_item_once(case):
    # Given a flight, and reports of ends, some of which repeat what was said before
    cells, reports = case
    out = out_of(cells)
    ended, back = set(), Counter()
    for indexes in reports:
        # When one comes
        fresh = out.close(indexes)
        # Then only what had not ended ended with it
        assert fresh == [index for index in indexes if index not in ended]
        ended.update(fresh)
        # And what came back so far are the cells of all that ended, what did not are the others'
        if fresh:
            back.update(out.give_back(fresh))
        assert +back == Counter(cells[index] for index in ended)
        assert +out.counts == Counter(cells[index] for index in out.still_open())
        assert out.left == len(out.still_open()) == len(cells) - len(ended)


def test_of_what_comes_back_that_counts_as_earlier_which_was_clogged_meanwhile():
    # Given a flight that was pushed while `send` was clogged
    then = {"send": Closed("send", reason="503", probes=1, since=1.0)}
    out = out_of(CELLS, then)
    counts = Counter(CELLS)
    # When `resize` is clogged too, and `send` still is, or is again
    again = {"send": Closed("send", reason="503", probes=1, since=9.0)}
    resize = {"resize": Closed("resize", reason="out of memory", probes=1, since=5.0)}
    # Then what was no probe of theirs when it was pushed is told apart
    assert out.newly_clogged(then | resize, counts) == {CELLS[0]: 1}
    assert out.newly_clogged(again | resize, counts) == {CELLS[0]: 1, CELLS[1]: 1}
