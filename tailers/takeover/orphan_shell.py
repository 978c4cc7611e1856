"""Shell of a stream's orphans, items that a former owner had detached (orphans.py): reads their rows and records, and
writes their rows.

Here are the awaits. A partition's rows are looked at before it is read; those of items that were passed, beside
reading.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...sdk.source import StreamBatch
from ..ledger.rows import Rows
from ..partition import Partition
from ..rules.orphans import OrphanStep
from ..stream_core import StreamCore
from .orphans import OrphanBatch, without_payload


class OrphanShell:
    """Reads and writes for the orphans of one stream tailer. `see` returns its core, told how the world is now, and
    `carry_out` carries out the core's decisions; `reread` reads records again, None: its source cannot."""

    def __init__(
        self,
        rows: Rows,
        see: Callable[[], StreamCore],
        carry_out: Callable[[], None],
        reread: Callable[[Partition, list[int]], Awaitable[StreamBatch]] | None,
    ) -> None:
        self._rows = rows
        self._see = see
        self._carry_out = carry_out
        self._reread = reread

    async def found(self, part: Partition) -> None:
        """Tells the core the rows of a partition that was taken and of which nothing was read, those of adopted items
        too; then releases orphans that do not run."""
        others = await self._rows.read(self._see().orphans.unknown(part))
        self._see().orphans.found(part, others.values())
        await self._release()

    async def opened(self) -> None:
        """Gives adopted items that had been passed their records, when the source can be read, before anything else
        is."""
        while some := self._see().orphans.take(OrphanStep.RECORD):
            there = await self._records(some)
            self._see().orphans.recorded(some, there)

    async def run(self) -> None:
        """Looks for rows of items that were passed and do not run."""
        await self._copy()
        while below := self._see().orphans.take_below():
            part, end, known = below
            async for rows in self._rows.below(part.name, end):
                self._see().orphans.passed(part, rows, known)
                await self._release()
                await self._copy()

    async def _release(self) -> None:
        while some := self._see().orphans.take(OrphanStep.RELEASE):
            answers = await self._rows.write(some.changes)
            self._see().orphans.released(some, answers)

    async def _copy(self) -> None:
        while some := self._see().orphans.take(OrphanStep.COPY):
            there = await self._records(some)
            self._see().orphans.copied(some, there)
            self._carry_out()

    async def _records(self, some: OrphanBatch) -> StreamBatch:
        """The records that the source still has."""
        if self._reread is None:
            return without_payload(some.part, [])
        return await self._reread(some.part, [each.row.position for each in some.orphans])
