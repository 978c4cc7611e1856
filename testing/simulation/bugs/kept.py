"""Mistakes by which something goes that is to be kept: deletions by age (stores/trusted_time.py), what a tailer has not
read (stores/log/sqlite_retention.py), and what another copy of a log has (stores/bindings.py)."""

from __future__ import annotations

from typing import Any

from ....assembly import log_binding
from ....stores.bindings import BindingVerdict, LogBinding, verdict
from ....stores.log import sqlite_retention
from ....stores.trusted_time import TrustedTime, TrustedTimes
from ..planting import Bug, bug, instead


@bug
def _what_is_old_goes_by_the_wall_clock() -> Bug:
    return instead(TrustedTime, "micros", lambda self, wall=None: int(self._clock.wall() * 1e6))


@bug
def _a_start_believes_its_wall_clock() -> Bug:
    def begin(self: TrustedTimes, *, fresh: bool, here: bool = True) -> None:
        """Goes on from nothing: each clock is believed as it is."""

    return instead(TrustedTimes, "begin", begin)


@bug
def _what_is_old_goes_whether_it_was_read_or_not() -> Bug:
    return instead(sqlite_retention, "needed_from", lambda readers, place: None)


# ---- copies of a folder


def _judged(found: BindingVerdict, instead_of_it: BindingVerdict) -> Bug:
    def judge(held: LogBinding, wanted: LogBinding, *known: Any) -> BindingVerdict:
        real = verdict(held, wanted, *known)
        return instead_of_it if real is found else real

    return instead(log_binding, "verdict", judge)


@bug
def _a_binding_that_is_held_is_taken() -> Bug:
    return _judged(BindingVerdict.HELD, BindingVerdict.FREE)


@bug
def _a_copy_that_was_left_behind_goes_on() -> Bug:
    return _judged(BindingVerdict.LEFT_BEHIND, BindingVerdict.FREE)


@bug
def _a_binding_that_nobody_renews_stays_held() -> Bug:
    def judge(held: LogBinding, wanted: LogBinding, mark: str, unchanged: float) -> BindingVerdict:
        return verdict(held, wanted, mark, 0.0)

    return instead(log_binding, "verdict", judge)
