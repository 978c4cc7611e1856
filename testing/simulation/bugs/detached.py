"""Mistakes with items that are passed while they run (tailers/departures/detaching.py)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ....model.audit import Fate
from ....tailers.departures.detaching import Detaching
from ....tailers.pumps import copy_starter as copy_starter_
from ....tailers.rules import ledger as rules
from ....tailers.rules.ledger import CopyVerdict
from ....tailers.takeover.inherited import Inherited
from ....tailers.takeover.orphan_shell import OrphanShell
from ..planting import Bug, breaks, bug, instead


@breaks("L15", by="the checkpoint passed")
def _passed_before_its_row_is_durable() -> Bug:
    real = Detaching.add

    def add(self: Detaching, item: Any, before: Any, row: Any, *, runs: bool = True) -> None:
        part, position = item.partition, item.position
        part.detached[position] = before if row is None else row
        part.settle([position], Fate.DELAYED)
        self._decided.wake = True
        asyncio.get_running_loop().call_later(1.0, lambda: real(self, item, before, row, runs=runs))

    return instead(Detaching, "add", add)


@bug
def _a_successor_starts_what_is_detached_and_runs() -> Bug:
    return instead(Inherited, "positions_of", lambda self, name: set())


@breaks("L16", by="two at once")
def _a_guard_starts_whatever_its_row_says() -> Bug:
    real, real_starts = rules.copy_finds, rules.starts

    def finds(*args: Any) -> CopyVerdict:
        verdict = real(*args)
        return CopyVerdict.START if verdict is CopyVerdict.GUARD else verdict

    def starts(rows: Any, copies: Any, epoch: int, fence: int, now: float) -> Any:
        return real_starts(rows, copies, epoch, fence, float("inf"))

    stack = contextlib.ExitStack()
    stack.enter_context(instead(rules, "copy_finds", finds))
    stack.enter_context(instead(copy_starter_, "starts", starts))
    return stack


@bug
def _what_a_dead_owner_had_detached_is_forgotten() -> Bug:
    async def run(self: OrphanShell) -> None:
        """Looks at nothing."""

    return instead(OrphanShell, "run", run)


@bug
def _a_detached_item_that_was_lost_is_released_at_once() -> Bug:
    real = Detaching.lost

    def lost(self: Detaching, item: Any, not_before: float) -> None:
        real(self, item, 0.0)

    return instead(Detaching, "lost", lost)
