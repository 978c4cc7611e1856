"""Moves of a stream's checkpoint by hand, between two pumps of its tailer: each owns the source for that moment.

In the order that keeps the laws: take the row, so that nobody else writes; note durably which positions are passed and
by whose word; then move the checkpoint (it never goes back, L13), tell the ledger, and leave the row empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from ...model.audit import Fate
from ...model.drop import Cause, Drop
from ...model.errors import InvalidRequest, TailraceError
from ...model.ledger import LedgerEntry
from ...model.seek import END, START, Move, Seek
from ...sdk.source import Capabilities, StreamSource
from ...stores.checkpoints.checkpoints import Mark
from ..counts import TailerCounts
from ..departures.departures import fate_of
from ..departures.durable import until_available
from ..ledger.rows import Rows
from ..ledger.suspicion import mark_suspects
from ..partition import Partition
from ..resources import Setup
from ..rules.seek import Passing, passing
from ..takeover.epoch import Epoch
from .first_positions import first_from, first_kept

#: Rows of the ledger in one look.
ROWS = 1000


class Seeking:
    """One move, while no pump of the tailer runs. `source` was not opened; it is closed when the move is over."""

    def __init__(self, setup: Setup, counts: TailerCounts, source: StreamSource) -> None:
        self._setup = setup
        self._counts = counts
        self._source = source
        self._name = setup.config.name

    async def move(self, seek: Seek) -> list[Move]:
        """Moves every partition that is meant; with `dry_run` it only says what would move. Raises InvalidRequest, with
        nothing changed, and every error of the source and the stores."""
        stores = self._setup.environment
        if self._setup.kind.capabilities.sparse:
            raise InvalidRequest(
                f"the tailer {self._name!r}: the positions of its source are far apart, and nobody knows how many "
                "items lie between two, so its checkpoint cannot be moved by hand. Pause the tailer, or set a gate "
                "that drops the items that are not to run"
            )
        try:
            if seek.dry_run:
                parts, ends = await self._parts(await stores.checkpoints.load(self._name))
                for part in parts.values():
                    part.know(await self._rows_of(part))
                return [move for move, _ in await self._plan(seek, parts, ends)]
            epoch = Epoch(
                stores.ownership, stores.checkpoints, self._name, self._setup.sizes, self._setup.clock, self._refused
            )
            try:
                return await self._moved(seek, epoch)
            finally:
                with suppress(TailraceError):
                    await epoch.release(0.0)
        finally:
            await self._source.close()

    def _refused(self) -> None:
        self._counts.refused()

    async def _moved(self, seek: Seek, epoch: Epoch) -> list[Move]:
        stores, clock = self._setup.environment, self._setup.clock
        parts, ends = await self._parts(await epoch.take())
        rows = Rows(stores.ledger, epoch, self._name, parts)
        for part in parts.values():
            await rows.open(part)
            if epoch.left_behind:  # the next owner will not know
                await mark_suspects(rows, self._name, part, epoch.number)
        moves = []
        for move, passed in await self._plan(seek, parts, ends):
            part, by = parts[move.partition], (Cause.SEEK, epoch.number, seek.who, seek.why, clock.wall())
            drops = [Drop(first, last, last - first + 1, *by) for first, last in passed.dropped]
            if drops:
                write = partial(stores.drops.add, self._name, part.name, drops, part.checkpoint)
                await until_available(write, lambda why: None)
            for row in passed.away:
                part.settle((row.position,), fate_of(row))
            part.skip(move.after - 1, Fate.DROPPED)
            if (moved := part.mark()) is not None:
                await epoch.commit({part.name: moved})
                await epoch.guarded(partial(stores.ledger.passed, self._name, part.name, epoch.number, moved.position))
            self._counts.dropped += move.dropped
            moves.append(move)
        return moves

    async def _parts(self, marks: Mapping[str, Mark]) -> tuple[dict[str, Partition], dict[str, int]]:
        """The partitions that have a checkpoint or that the source has, and where the source ends."""
        await self._source.open({name: mark.position for name, mark in marks.items()})
        ends = await self._source.ends()
        return {name: Partition(name, marks.get(name, Mark(0))) for name in sorted({*marks, *ends})}, ends

    async def _rows_of(self, part: Partition) -> list[LedgerEntry]:
        found: list[LedgerEntry] = []
        last = part.checkpoint - 1
        while True:
            rows = await self._setup.environment.ledger.list(self._name, ROWS, (part.name, last))
            found += [row.entry for row in rows if row.partition == part.name]
            if len(rows) < ROWS or rows[-1].partition != part.name:
                return found
            last = found[-1].position

    async def _plan(
        self, seek: Seek, parts: Mapping[str, Partition], ends: Mapping[str, int]
    ) -> list[tuple[Move, Passing]]:
        """The move of each partition that is meant. Nothing is changed before all of it is known to be right."""
        names = sorted(parts) if seek.partition is None else [seek.partition]
        if seek.partition is not None and seek.partition not in parts:
            there = ", ".join(map(repr, sorted(parts))) or "none"
            raise InvalidRequest(f"the tailer {self._name!r} has no partition {seek.partition!r}; there are: {there}")
        if seek.position is not None and len(names) > 1:
            raise InvalidRequest(
                f"the tailer {self._name!r} has {len(names)} partitions: name the one of the position with --partition"
            )
        plan = []
        for name in names:
            part = parts[name]
            where = f"the tailer {self._name!r}, partition {name!r}"
            end = max(part.checkpoint, ends.get(name, part.checkpoint))
            to = await self._target(seek, part, end)
            if to > end:
                raise InvalidRequest(
                    f"{where}: its source ends at {end}, so there is no position {to}. Nothing was changed"
                )
            passed = passing(part.frontier, part.rows, to, where)
            plan.append((Move(name, part.checkpoint, to, passed.items), passed))
        return plan

    async def _target(self, seek: Seek, part: Partition, end: int) -> int:
        if seek.position is not None:
            return seek.position
        if seek.edge == END:
            return end
        if seek.edge == START:
            return await first_kept(self._source, part.name, part.checkpoint, end)
        powers: Capabilities = self._source.capabilities
        if not (powers.rereads and powers.timed):
            raise InvalidRequest(
                f"the source of the tailer {self._name!r} (kind {self._setup.kind.name}) has no times that rise with "
                "its positions: name a position, start or end"
            )
        return await first_from(self._source, part.name, part.checkpoint, end, seek.time)
