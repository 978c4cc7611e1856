"""Mistakes that break one rule of the leases each, and no other (docs/leases.md): the line of code that keeps the rule
lacks a part."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ....model import lease
from ....model.ledger import LedgerPlace
from ....scheduler.core import Core
from ....scheduler.server import SchedulerServer
from ....stores.checkpoints import sqlite as checkpoints_
from ....stores.checkpoints.sqlite import SqliteCheckpoints
from ....stores.ledger import sqlite as ledger_
from ....stores.ledger.sqlite import SqliteLedger
from ....tailers import stream_core as stream_core_
from ....tailers.ledger import suspicion
from ....tailers.ledger.rows import Rows
from ....tailers.rules import ledger as rules
from ....tailers.rules.ledger import CopyVerdict
from ..planting import Bug, breaks, instead

# ---- sizes, and breaks that heal (L2, L3)


@breaks("L2", by="unexplained")
def _a_schedulers_lease_leaves_no_room_for_a_heartbeat_that_fails() -> Bug:
    return instead(lease.LeaseSizes, "scheduler", 18.0)


@breaks("L2", by="unexplained")
def _a_sources_lease_leaves_no_room_for_a_heartbeat_that_fails() -> Bug:
    return instead(lease.LeaseSizes, "source", 22.0)


@breaks("L3", by="unexplained")
def _a_tailer_that_is_away_for_two_seconds_is_forgotten() -> Bug:
    real = Core.tick

    def tick(self: Core, now: float, wall: float) -> None:
        for tailer in [*self.tailers.values()]:
            if not tailer.connected and now >= tailer.away_since + 2.0:
                self.forget_tailer(tailer, now)
        real(self, now, wall)

    return instead(Core, "tick", tick)


# ---- what is over stays over (L5)


@breaks("L5", by="unfinished")
def _a_session_that_is_begun_anew_keeps_its_name() -> Bug:
    real = SchedulerServer._known

    def known(self: SchedulerServer, hello: Any, end: Any) -> Any:
        hello.ClearField("anew")
        return real(self, hello, end)

    return instead(SchedulerServer, "_known", known)


# ---- who writes last (L11)


@breaks("L11", by="attempt")
def _an_owner_reads_the_ledger_before_it_writes_its_epoch() -> Bug:
    real = SqliteLedger.open

    async def open(self: SqliteLedger, source: str, partition: str, epoch: int) -> Any:
        rows = [row.entry for row in await self.list(source, 1000) if row.partition == partition]
        await asyncio.sleep(1.0)  # its write waits in line
        await real(self, source, partition, epoch)
        return rows

    return instead(SqliteLedger, "open", open)


@breaks("L11", by="older")
def _the_checkpoint_takes_what_an_older_epoch_writes() -> Bug:
    real = SqliteCheckpoints.commit

    async def commit(self: SqliteCheckpoints, source: str, epoch: int, marks: Any) -> None:
        newest = await self._file.read(lambda connection: checkpoints_._epoch(connection, source))
        await real(self, source, epoch if newest is None else newest, marks)

    return instead(SqliteCheckpoints, "commit", commit)


# ---- the rows of failed items (L14 to L20)


@breaks("L14", by="beside others")
def _what_was_out_when_its_owner_died_runs_beside_others() -> Bug:
    real = suspicion.add_counts

    def add_counts(items: Any) -> None:
        real(items)
        for extra in items.mapped.extras.values():
            extra.alone = False

    return instead(stream_core_, "add_counts", add_counts)


@breaks("L16", by="two at once")
def _a_row_is_written_whatever_it_is_by_then() -> Bug:
    return instead(ledger_, "_as_read", lambda connection, where, moves, passed: (moves, []))


@breaks("L17", by="two at once")
def _an_owner_starts_a_copy_that_it_runs_already() -> Bug:
    real = rules.copy_finds

    def finds(row: Any, n: int, epoch: int, known: Any = None) -> CopyVerdict:
        return real(row, n, epoch, row)

    return instead(rules, "copy_finds", finds)


@breaks("L19", by="ledger")
def _a_copys_fence_is_not_in_its_row() -> Bug:
    real = rules.running
    stack = contextlib.ExitStack()
    stack.enter_context(instead(rules, "running", lambda row, *rest: real(row, *rest)._replace(fence=row.fence)))
    stack.enter_context(instead(ledger_, "refusal", lambda before, after, owner: ""))
    return stack


@breaks("L20", by="ledger")
def _a_row_goes_when_it_is_over() -> Bug:
    real = ledger_._compare_and_set

    def write(connection: Any, where: Any, moves: Any, passed: int, done: Any, *, last: bool) -> None:
        real(connection, where, moves, passed, done, last=last)
        done.gone.extend(
            move.after.position for move in moves if move.after.place in (LedgerPlace.DONE, LedgerPlace.DEAD)
        )

    return instead(ledger_, "_compare_and_set", write)


@breaks("L20", by="left over")
def _an_owner_does_not_tell_how_far_the_former_one_had_come() -> Bug:
    async def open(self: Rows, part: Any) -> None:
        part.know(await self._epoch.guarded(lambda: self._ledger.open(self._source, part.name, self._epoch.number)))

    return instead(Rows, "open", open)
