"""Time-outs as the world sees them: a run is told to end when its time is over, not before; it goes on for a grace at
most; its process is ended for no other; and it spent an attempt."""

from __future__ import annotations

from collections.abc import Callable

from .journal import ROUNDING, Execution, Journal
from .plan import Plan

#: True seconds by which what should happen at once may be late.
SLACK = 0.1
#: True seconds after which a process knows that it stood still (runtime/rules/overdue.py), whatever its clock.
STOOD_STILL = 3.1
#: Seconds that a function gets after its time-out before its process is ended.
GRACE = 2.0


class Overtime:
    """The time of a run beyond its time-out. `rate` is how fast the clock of a run's machine goes. Time in which its
    process was frozen does not count: it begins anew when that goes on."""

    def __init__(self, plan: Plan, journal: Journal, rate: Callable[[Execution], float]) -> None:
        self._timeout = plan.timeout
        self._journal = journal
        self._rate = rate
        self._restores = any(fault.kind == "restore" for fault in plan.faults)
        journal.begins.append(self._begins)
        if plan.timeout:
            journal.ends.append(self._ended)
            journal.goes_on.append(self._goes_on)

    def _begins(self, run: Execution) -> None:
        """Checks that the run before this one spent an attempt, if it failed and is known to have."""
        story = self._journal.stories[run.id]
        last = story.executions[-1] if story.executions else None
        if last is None or not last.spent or self._restores or not self._journal.heard(run.id):
            return
        if run.attempt <= last.attempt:
            self._journal.wrong(f"attempt: {run.id} failed as attempt {last.attempt}, and runs as {run.attempt} again")

    def _over(self, run: Execution) -> float:
        return run.start + self._timeout / self._rate(run)

    def _goes_on(self, run: Execution) -> None:
        """Excuses a run, once, whose process thaws: it could not hear that its time is over."""
        if not run.excused and run.thawed - run.froze > STOOD_STILL and self._over(run) < run.thawed:
            run.excused = run.thawed

    def _ended(self, run: Execution) -> None:
        assert run.end is not None
        over, grace = self._over(run), GRACE / self._rate(run)
        if run.told and run.timed_out and run.told < over - ROUNDING:
            self._wrong(run, f"was told {over - run.told:.3f} s before its time was over")
        if not run.told and run.end > max(over, run.thawed) + SLACK:
            self._wrong(run, f"was not told that its time was over {run.end - over:.3f} s ago")
        if run.end > max(over, run.thawed) + grace + SLACK:
            self._wrong(run, f"goes on {run.end - over:.3f} s after its time was over")
        least = max(over, run.excused) + grace
        if run.ended_all and run.end < least - ROUNDING:
            self._wrong(run, f"has its process ended {least - run.end:.3f} s before its grace was over")

    def _wrong(self, run: Execution, what: str) -> None:
        self._journal.wrong(f"overtime: {run.id} in {run.where} {what}")
