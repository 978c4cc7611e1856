"""The table of a queued workload's states, whole."""

from __future__ import annotations

import pytest

from tailrace.model.claim import State
from tailrace.stores.queue.lifecycle import LEASED, TERMINAL, WAITING, may_move, next_trigger

#: Illegal moves, by the state before. Written out, so that a change of the table is a change of two places.
ILLEGAL = {
    **{state: set(State) - {State.ENQUEUED, State.CANCELLED} for state in WAITING},
    State.ENQUEUED: set(),
    State.PROCESSING: set(),
    **{state: set(State) for state in TERMINAL},
}


@pytest.mark.parametrize("before", list(State))
@pytest.mark.parametrize("after", list(State))
def test_the_table(before: State, after: State) -> None:
    assert may_move(before, after) is (after not in ILLEGAL[before])


def test_every_state_waits_is_leased_or_is_over() -> None:
    assert set(State) == WAITING | LEASED | TERMINAL
    assert len(WAITING) + len(LEASED) + len(TERMINAL) == len(State)
    assert {state for state in State if state < 10} == WAITING | LEASED


@pytest.mark.parametrize("state", list(State))
def test_every_state_that_is_not_over_has_a_time_at_which_somebody_must_look(state: State) -> None:
    trigger = next_trigger(state, due=1.0, lease_end=2.0)
    assert trigger == (1.0 if state in WAITING else 2.0 if state in LEASED else None)
