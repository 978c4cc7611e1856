"""Items whose lease is over, or nearly so: they go back, and nothing of them starts."""

from __future__ import annotations

from unit.scheduler.test_scheduler_core import KINDS, WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Outcomes, ref


def test_a_push_whose_lease_is_over_goes_back() -> None:
    made = core()
    worker_of(made)
    tailer = tailer_of(made)
    made.push(tailer, flight(1, KINDS[0]), 0, 28.0, 29.0)
    assert tailer.ended == {ref(1, 0): Ended(Outcome.HELD, "lease_over")}


def test_what_has_less_than_a_heartbeat_of_its_lease_left_does_not_start() -> None:
    # Given an item that waits for a slot, whose tailer renews nothing more
    made = core()
    worker = worker_of(made, limit=1)
    tailer = tailer_of(made)
    made.push(tailer, flight(1, KINDS[0]), 0, 28.0, 0.0)
    made.push(tailer, flight(2, KINDS[0]), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    out = sent(made, worker, 0.0)
    # When the slot is free a moment before the lease of the other item is over
    made.report(worker, Outcomes(list(out), {}), 25.0, WALL)
    made.lease_requested(worker, 1, 25.0)
    made.turn(25.0, WALL)
    # Then it goes back: the lease would end all that runs in the process that had it
    assert sent(made, worker, 25.0) == {}
    assert tailer.ended == {ref(2, 0): Ended(Outcome.HELD, "lease_over")}
