"""Cancelling a replay: no process reads it any more, and its items that wait for a retry are given up."""

from __future__ import annotations

import contextlib

from ...foundation.clock import Clock
from ...model.errors import StaleFence
from ...model.ledger import LedgerEntry, LedgerPlace
from ...model.replay import Replay
from ...stores.ledger.ledger import Change, Ledger
from ...stores.ownership.ownership import Ownership
from ..rules.takeover import SeenRow, free_at, observe
from ..takeover.epoch import WHOLE
from .plan import ROWS


class Cancelling:
    """Cancels replays by the rows in the stores alone, so that any process can, also when none has the tailer's file
    any more."""

    def __init__(self, ownership: Ownership, ledger: Ledger, clock: Clock, drift: float) -> None:
        self._ownership = ownership
        self._ledger = ledger
        self._clock = clock
        self._drift = drift
        self._seen: dict[int, SeenRow] = {}

    async def done(self, replay: Replay) -> bool:
        """Takes the next step to cancel a replay; returns whether it was the last one."""
        if not await self._left(replay) or await self._give_up_waiting(replay):
            return False
        await self._forget_rows(replay)
        return True

    def over(self, number: int) -> None:
        """Forgets the row that was seen of a replay."""
        self._seen.pop(number, None)

    async def _left(self, replay: Replay) -> bool:
        """Whether no process reads a replay: its row is empty, or stood unchanged for its lease. A process that reads
        it stops by itself, and leaves the row empty."""
        row, now = await self._ownership.read(replay.name, WHOLE), self._clock.monotonic()
        facts = (0, "", 0.0) if row is None else (row.version, row.holder, row.lease)
        seen = self._seen[replay.number] = observe(self._seen.get(replay.number), *facts, now)
        return now >= free_at(seen, self._drift)

    async def _give_up_waiting(self, replay: Replay) -> int:
        """Marks items that wait for a retry as over, in their rows, where a copy that comes due finds it. Returns the
        number of items that are not over, since they run."""
        ledger, left = self._ledger, 0
        after = ("", -1)
        while rows := await ledger.list(replay.name, ROWS, after):
            after = (rows[-1].partition, rows[-1].entry.position)
            changes: dict[str, list[Change]] = {}
            for partition, entry in rows:
                if entry.place in (LedgerPlace.PARKING, LedgerPlace.PARKED):
                    changes.setdefault(partition, []).append((entry, entry._replace(place=LedgerPlace.DONE)))
                left += entry.place is LedgerPlace.RUNNING
            for partition, wanted in changes.items():
                answers = await ledger.write(replay.name, partition, wanted, None)
                left += sum(_is_waiting(answer) for answer in answers)
        return left

    async def _forget_rows(self, replay: Replay) -> None:
        """Drops all rows of a cancelled replay, whose items are over: its checkpoint moves no further, so they would
        stay (L20)."""
        owner = await self._ownership.read(replay.name, WHOLE)
        if owner is None:
            return
        for stretch in replay.stretches:
            with contextlib.suppress(StaleFence):
                await self._ledger.passed(replay.name, stretch.partition, owner.epoch, stretch.end)


def _is_waiting(row: LedgerEntry | None) -> bool:
    return row is not None and row.place in (LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING)
