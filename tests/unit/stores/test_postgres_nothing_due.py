"""Looks at a queue on PostgreSQL that are spared, and that none is that could find something."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell, Closed
from tailrace.stores.queue.postgres.nothing_due import MOST, NothingDue, Scope

LANES = [1, 2, 3]
SCOPE = Scope(frozenset({Cell("f", 1), Cell("f", 2)}), frozenset())


def looked(dry: NothingDue, until: float = 10.0) -> None:
    dry.looking()
    dry.found(SCOPE, until)


def test_after_a_look_in_vain_only_what_was_put_there_is_due() -> None:
    dry = NothingDue()
    assert dry.fresh(SCOPE, LANES, 0.0) == [] and dry.left(0.0) == 0.0
    looked(dry)
    assert dry.left(0.0) == 10.0
    dry.put({7: 2, 8: 2, 9: 3})
    assert dry.fresh(SCOPE, LANES, 0.0) == [2, 3] and dry.left(0.0) == 0.0
    dry.claimed([7, 9])
    assert dry.fresh(SCOPE, [1, 2], 0.0) == [2]
    dry.claimed([8])
    assert dry.fresh(SCOPE, LANES, 0.0) == [] and dry.left(0.0) == 10.0


def test_it_is_known_for_those_cells_without_the_closed_ones_only_and_for_a_while() -> None:
    dry = NothingDue()
    looked(dry)
    dry.put({7: 2})
    less, more = Scope(frozenset({Cell("f", 1)}), frozenset()), Scope(frozenset({Cell("g", 1)}), frozenset())
    assert dry.fresh(less, [2], 0.0) == [2]
    assert dry.fresh(more, [2, 4], 0.0) == []  # nobody looked at the other function
    assert dry.fresh(Scope(SCOPE.cells, frozenset({Closed("f", tenant="t")})), [2], 0.0) == []
    assert dry.fresh(SCOPE, [2], 10.0) == []
    dry.forget()
    assert dry.fresh(SCOPE, [2], 0.0) == [] and dry.left(0.0) == 0.0


def test_what_is_put_while_a_look_is_made_is_not_forgotten_and_too_much_needs_a_look() -> None:
    dry = NothingDue()
    dry.looking()
    dry.put({7: 2})
    dry.found(SCOPE, 10.0)
    assert dry.fresh(SCOPE, LANES, 0.0) == [2]
    dry.put(dict.fromkeys(range(MOST + 1), 1))
    assert dry.fresh(SCOPE, LANES, 0.0) == [] and dry.left(0.0) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=40))
def test_stored_and_claimed_in_any_order_what_is_left_is_what_was_stored_and_not_claimed(
    steps: list[tuple[bool, int]],
) -> None:
    # Given that each item is stored once and claimed once at most, and either answer comes first
    dry = NothingDue()
    looked(dry)
    stored, claimed = set[int](), set[int]()
    for store, number in steps:
        if store and number not in stored:
            stored.add(number)
            dry.put({number: 1})
        elif not store and number not in claimed:
            claimed.add(number)
            dry.claimed([number])
        assert bool(dry.fresh(SCOPE, LANES, 0.0)) is bool(stored - claimed)
        assert (dry.left(0.0) == 10.0) is not bool(stored - claimed)
