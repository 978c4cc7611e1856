"""Mistakes of a scheduler with how many may run at once."""

from __future__ import annotations

from typing import Any

from ....scheduler import dispatch as dispatch_
from ....scheduler.limits import Limits
from ....scheduler.rules.charges import Charges
from ....scheduler.rules.limit import Limit, take_all
from ..planting import Bug, bug, instead


@bug
def _what_workers_still_run_is_not_counted() -> Bug:
    return instead(Limits, "carry", lambda self, worker, carried, now: None)


@bug
def _a_scheduler_does_not_wait_for_its_former_workers() -> Bug:
    return instead(Charges, "bounds_running", False)


@bug
def _an_end_is_counted_twice() -> Bug:
    real = Limits.ended

    def ended(self: Limits, items: Any) -> None:
        real(self, items)
        for limit in self.charges.all():
            limit.running = max(0, limit.running - len(items))

    return instead(Limits, "ended", ended)


@bug
def _what_runs_is_not_counted_anew_when_quotas_change() -> Bug:
    return instead(Limit, "found", lambda self, count: None)


@bug
def _a_batch_starts_although_a_limit_has_less_room() -> Bug:
    def starts(wanted: Any, now: float) -> list[Limit]:
        take_all(wanted, now)
        return []

    return instead(dispatch_, "take_all", starts)
