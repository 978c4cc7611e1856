"""Mistakes with the rows of failed stream items (L14 to L20)."""

from __future__ import annotations

import contextlib
from typing import Any

from ....model.ledger import LedgerPlace
from ....tailers.departures import departures as departures_
from ....tailers.ledger.rows import Rows
from ....tailers.pumps import copy_starter as copy_starter_
from ....tailers.rules import departure_steps
from ....tailers.rules import ledger as rules
from ....tailers.rules.departure_steps import Way, resume
from ....tailers.rules.ledger import CopyVerdict, Find
from ..planting import Bug, breaks, instead


@breaks("L16", by="early")
def _n_of_a_copy_is_ignored() -> Bug:
    """Ignores `n`, and the time in its row too, which would keep the copy from starting early."""
    real, real_starts = rules.copy_finds, rules.starts

    def finds(row: Any, n: int, epoch: int, known: Any = None) -> CopyVerdict:
        return real(row, n if row is None else row.n, epoch, known)

    def starts(rows: Any, copies: Any, epoch: int, fence: int, now: float) -> Any:
        return real_starts(rows, copies, epoch, fence, float("inf"))

    stack = contextlib.ExitStack()
    stack.enter_context(instead(rules, "copy_finds", finds))
    stack.enter_context(instead(copy_starter_, "starts", starts))
    return stack


@breaks("L16", by="two at once")
def _a_copy_starts_whatever_its_row_says() -> Bug:
    def finds(row: Any, n: int, epoch: int, known: Any = None) -> CopyVerdict:
        return CopyVerdict.OVER if row is None else CopyVerdict.START

    return instead(rules, "copy_finds", finds)


@breaks("L17", by="the checkpoint")
def _a_copy_that_finds_running_settles() -> Bug:
    real = rules.copy_finds

    def finds(row: Any, n: int, epoch: int, known: Any = None) -> CopyVerdict:
        if row is not None and row.place is LedgerPlace.RUNNING and row != known:
            return CopyVerdict.OVER
        return real(row, n, epoch, known)

    return instead(rules, "copy_finds", finds)


@breaks("L18", by="the checkpoint")
def _a_copy_that_finds_a_later_parking_settles() -> Bug:
    real = rules.copy_finds

    def finds(row: Any, n: int, epoch: int, known: Any = None) -> CopyVerdict:
        verdict = real(row, n, epoch, known)
        return CopyVerdict.OVER if verdict is CopyVerdict.APPEND else verdict

    return instead(rules, "copy_finds", finds)


@breaks("L15", by="the checkpoint")
def _parked_before_its_row() -> Bug:
    real = departure_steps.begin

    def begin(way: Way, before: Any = None, row: Any = None) -> Any:
        return resume(way, row) if way is Way.PARK and row is not None else real(way, before, row)

    return instead(departures_, "begin", begin)


@breaks("L15", by="two at once")
def _a_position_with_a_row_runs_from_its_source() -> Bug:
    return instead(departures_, "found", lambda row: Find.RUN)


@breaks("L15", by="the checkpoint passed")
def _what_is_parking_is_not_appended_again() -> Bug:
    real = rules.found

    def found(row: Any) -> Find:
        return Find.SKIP if real(row) is Find.APPEND else real(row)

    return instead(departures_, "found", found)


@breaks("L14", by="the checkpoint passed")
def _a_suspicion_bars_its_item() -> Bug:
    real = rules.found

    def found(row: Any) -> Find:
        return Find.SKIP if real(row) is Find.ALONE else real(row)

    return instead(departures_, "found", found)


@breaks("L20", by="left over")
def _rows_are_never_swept() -> Bug:
    async def nothing(self: Rows, partition: str, position: int) -> None:
        """Leaves them."""

    return instead(Rows, "_passed", nothing)
