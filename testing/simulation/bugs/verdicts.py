"""Mistakes in what an end says of its function: that it kept the interpreter lock (runtime/rules/silence.py), is broken
(scheduler/evidence.py), or is of another version (scheduler/misfits.py)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ....model.outcome import Outcome
from ....model.workload import Flight
from ....runtime import supervisor
from ....runtime.rules.silence import Silence
from ....runtime.supervisor import ALONE, Supervisor
from ....scheduler import evidence, misfits
from ....scheduler.evidence import Evidence
from ....scheduler.misfits import Misfits
from ....scheduler.rules.flow import ATTEMPT, Item
from ....tailers.rules.retry_probes import RetryProbes
from ..planting import Bug, bug, instead

#: Seconds of silence that any process may have.
SOON = 2.0

# ---- the interpreter lock


@bug
def _who_keeps_the_interpreter_lock_is_no_suspect() -> Bug:
    stack = ExitStack()
    stack.enter_context(instead(Supervisor, "watch", lambda self, now: None))
    stack.enter_context(instead(Silence, "is_own_doing", lambda self, armed, renewed, when: False))
    return stack


@bug
def _whoever_ran_beside_a_kept_lock_is_a_suspect_with_others() -> Bug:
    real = Supervisor.assign

    def assign(self: Supervisor, session: int, flight: Flight, fences: list[int], pool: str) -> None:
        for extra in flight.extras.values():
            extra.alone = False
        real(self, session, flight, fences, pool.removesuffix(ALONE))

    return instead(Supervisor, "assign", assign)


@bug
def _an_executor_is_ended_as_soon_as_it_is_silent() -> Bug:
    stack = ExitStack()
    stack.enter_context(instead(supervisor, "longest", lambda sizes: SOON))
    stack.enter_context(instead(Silence, "is_to_end", lambda self, longest, armed, renewed, now: True))
    return stack


# ---- the circuit breaker


@bug
def _who_asks_for_another_try_seems_to_be_broken() -> Bug:
    real = evidence.verdict
    return instead(evidence, "verdict", lambda end: False if end.outcome == Outcome.RETRY else real(end))


@bug
def _retries_that_are_due_are_no_probes() -> Bug:
    return instead(RetryProbes, "next", lambda self, functions, now: [])


@bug
def _what_is_well_the_second_time_says_nothing() -> Bug:
    def first(items: Sequence[Item]) -> list[Item]:
        return [item for item in items if item[ATTEMPT] == 1]

    real_passed, real_well = Evidence.passed, Evidence.went_well
    stack = ExitStack()
    stack.enter_context(instead(Evidence, "passed", lambda self, items: real_passed(self, first(items))))
    stack.enter_context(
        instead(Evidence, "went_well", lambda self, items: real_well(self, [each for each in items if first(each[:1])]))
    )
    return stack


# ---- versions


@bug
def _what_one_version_does_not_take_is_fatal_at_once() -> Bug:
    return instead(misfits, "left_to_try", lambda refused, attached: False)


@bug
def _what_every_version_refused_is_handed_back() -> Bug:
    return instead(misfits, "left_to_try", lambda refused, attached: True)


@bug
def _a_version_that_refused_is_asked_again() -> Bug:
    return instead(Misfits, "mark", lambda self, flight, now: None)
