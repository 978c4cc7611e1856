"""The states of a queued workload and their next-trigger times, as one table (ATF).

    state               next trigger (when somebody must look again)       reached from
    NEW                 its due time                                       (submission); a hand-back
    ENQUEUED            the lease's end: a tailer holds it                 NEW, RETRIABLE_FAILURE, or a lease that ended
    PROCESSING          the lease's end: its tailer renewed it             ENQUEUED
    RETRIABLE_FAILURE   due time of the next attempt                       any leased state
    SUCCESS             none                                               any leased state
    FATAL_FAILURE       none                                               any leased state
    CANCELLED           none                                               NEW, RETRIABLE_FAILURE, any leased state
    DROPPED, EXPIRED    none                                               any leased state

An item placed on a worker has no state of its own: one lease covers its way to the worker and its run there, so that
neither the hand-over nor the start is a write. Number 3 was meant for it, and is in no store.
When the trigger of a leased item passes, its holder died and the item is leased again: it moves to ENQUEUED with a
higher fence.

Each engine reports the next trigger as `Status.due`, and the conformance suite checks it against this table. Engines
store it in their own ways: a claim's items share the end of its lease, and an item that waits for an older one of its
key is in no index of due items, though its due time stands.
"""

from __future__ import annotations

from ...model.claim import State

WAITING = frozenset({State.NEW, State.RETRIABLE_FAILURE})
LEASED = frozenset({State.ENQUEUED, State.PROCESSING})
TERMINAL = frozenset({State.SUCCESS, State.FATAL_FAILURE, State.CANCELLED, State.DROPPED, State.EXPIRED})

_MOVES: dict[State, frozenset[State]] = {
    **{state: frozenset({State.ENQUEUED, State.CANCELLED}) for state in WAITING},
    State.ENQUEUED: LEASED | WAITING | TERMINAL,
    State.PROCESSING: frozenset({State.ENQUEUED, State.PROCESSING}) | WAITING | TERMINAL,
    **{state: frozenset() for state in TERMINAL},
}


def may_move(before: State, after: State) -> bool:
    """Whether the table allows the move."""
    return after in _MOVES[before]


def next_trigger(state: State, due: float, lease_end: float) -> float | None:
    """Time at which somebody must look at an item in this state again: its due time, its lease's end, or never
    (None)."""
    if state in WAITING:
        return due
    if state in LEASED:
        return lease_end
    return None
