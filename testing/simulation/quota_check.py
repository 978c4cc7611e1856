"""Check of quotas as the world sees them: never more runs at once than were allowed."""

from __future__ import annotations

import math
from collections.abc import Callable

from .journal import Execution, Journal
from .plan import Plan

#: True seconds in which what a former quota allowed may still begin: it was handed to a worker that stood still.
HANDED_OUT = 40.0
#: True seconds after a scheduler's start in which a worker that it cannot reach may still run something.
UNREACHED = 20.0


class QuotaCheck:
    """Check of the runs at once against the quotas of the plan. `began` says when the scheduler's process began
    last."""

    def __init__(self, plan: Plan, journal: Journal, began: Callable[[], float]) -> None:
        self._plan = plan
        self._journal = journal
        self._began = began
        journal.begins.append(self._begins)

    def _begins(self, run: Execution) -> None:
        now = self._journal.now
        at_once = 1 + sum([not other.frozen and not other.overtaken for other in self._journal.live.values()])
        allowed = self._allowed(now)
        if at_once <= allowed or self._unreached(self._began(), now):
            return
        self._journal.wrong(f"limit: {run.id} is the {at_once}th of its function at once, and {allowed:g} are allowed")

    def _unreached(self, began: float, now: float) -> bool:
        """Whether a worker may run something that the scheduler, which began then, cannot have heard of."""
        return now - began < UNREACHED and any(
            fault.at < now
            and fault.at + fault.seconds > began - UNREACHED
            and (fault.kind == "weather" or "worker" in fault.host + fault.other)
            for fault in self._plan.faults
        )

    def _allowed(self, now: float) -> float:
        """The most that any quota allowed that may have been in force when this run was handed out."""
        former = [each for each in self._plan.limits if each.at <= now - HANDED_OUT]
        since = [each for each in self._plan.limits if now - HANDED_OUT < each.at <= now]
        return max([each.concurrency for each in (*former[-1:], *since)], default=math.inf)
