"""Back-pressure and credit: bounds that hold in any course of events."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell, Closed
from tailrace.model.workload import Kind
from tailrace.tailers.rules.credit import Credit
from tailrace.tailers.rules.window import FULL, Window


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 64), st.integers(0, 100)), max_size=60), st.integers(0, 99))
def test_a_window_is_never_passed_by_more_than_one_read(steps, span):
    window, taken = Window(items=64, bytes=1000, positions=100), []
    for reads, items, size in steps:
        room = window.room(span)
        if reads and room.items:
            items = min(items, room.items)
            window.take(items, items * size)
            taken.append((items, items * size))
            assert window.used_items <= 64 and room.items <= 100 - span
        elif taken and not reads:
            window.give(*taken.pop())
    while taken:
        window.give(*taken.pop())
    assert window.room().items == 64


def test_reading_resumes_when_a_sixteenth_is_free():
    window = Window(items=160)
    window.take(155, 0)
    assert window.room() == FULL
    window.give(5, 0)
    assert window.room().items == 10


def test_a_small_window_still_moves():
    window = Window(items=1)
    assert window.room().items == 1
    window.take(1, 0)
    assert window.room() == FULL


A, B = Cell("a", 0), Cell("b", 1)


def test_limits_are_absolute_and_a_cell_without_one_gets_nothing():
    credit = Credit()
    credit.limit([(A, 5)], 100)
    credit.limit([(A, 5)], 0)
    assert (credit.room(A), credit.room(B), credit.total_room) == (5, 0, 100)
    credit.take({A: 5})
    assert not credit.fits({A: 1}) and credit.rooms() == {}
    credit.limit([(A, 3)], 0)
    assert credit.room(A) == 0
    credit.give({A: 5})
    assert credit.rooms() == {A: 3} and credit.out == 0


def test_the_total_bounds_all_cells():
    credit = Credit()
    credit.limit([(A, 50), (B, 50)], 64)
    assert not credit.fits({A: 40, B: 30})
    credit.take({A: 40})
    assert credit.room(B) == 24


def test_there_is_room_as_long_as_any_cell_has_some():
    credit = Credit()
    credit.limit([(A, 5), (B, 5)], 100)
    assert credit.total_room == 100
    credit.take({A: 5})
    assert credit.total_room == 95
    credit.take({B: 5})
    assert credit.total_room == 0
    credit.give({A: 1})
    assert credit.total_room == 91


def test_closed_kinds_are_found_by_collection_and_tenant_and_drops_are_pushed():
    credit = Credit()
    credit.close([Closed("a", tenant="x", reason="paused"), Closed("a", collection="c", drop=True)])
    assert credit.why_closed(Kind("a", 0, "", "x")) == "paused"
    assert not credit.is_closed(Kind("a", 0, "c", "y")) and not credit.is_closed(Kind("b", 0, "", "x"))
    credit.close([])
    assert not credit.is_closed(Kind("a", 0, "", "x"))


def test_of_two_ranks_that_are_closed_both_are_known():
    # Given tenants of which two ranks are closed, in whatever order they are met
    credit, tenants = Credit(), [f"t{number}" for number in range(20)]
    credit.close([Closed("f", tenant=name, priority=rank) for name in tenants for rank in (0, 3)])
    # Then everything from the higher one on is closed
    assert all(credit.is_closed(Kind("f", rank, "", name)) for name in tenants for rank in range(4))
    # And from the lower one on when that alone is
    credit.close([Closed("f", tenant="t0", priority=3)])
    assert [credit.is_closed(Kind("f", rank, "", "t0")) for rank in range(4)] == [False, False, False, True]


def test_it_is_seen_when_a_cell_gets_room_that_had_none():
    # Given a cell all of whose room is taken
    credit, cell = Credit(), Cell("f", 1)
    credit.limit([(cell, 2)], 100)
    credit.rooms()
    credit.take({cell: 1})
    credit.rooms()
    opened = credit.opened
    # When it has less room, or none, nothing opened
    credit.take({cell: 1})
    assert cell not in credit.rooms() and credit.opened == opened
    # When it gets room again, or gates change, it did
    credit.give({cell: 1})
    assert cell in credit.rooms() and credit.opened > opened
    opened = credit.opened
    credit.close([])
    assert credit.opened > opened
