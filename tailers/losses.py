"""Positions that a stream tailer passes without running them: none without permission and a durable note.

A source may delete records before they were done, and a position may hold nothing (any more). Each such position is
noted in the store of drops before the frontier may pass it, like the items that an operator's gate drops
(departures.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..foundation.clock import Clock
from ..model.audit import Fate
from ..model.drop import Cause, Drop
from ..model.errors import PositionsGone
from ..sdk.source import StreamBatch
from ..stores.drops.drops import Drops
from .config import TailerConfig
from .counts import TailerCounts
from .departures.durable import until_available
from .partition import Partition
from .rules.position_ranges import ranges


class Losses:
    """Records what one tailer passes without running it; `departures.py` records drops by a gate.

    failing  why the store refuses notes; empty when it takes them
    """

    def __init__(self, config: TailerConfig, drops: Drops, clock: Clock, counts: TailerCounts) -> None:
        self._name = config.name
        self._allowed = frozenset(config.allow_loss)
        self._drops = drops
        self._clock = clock
        self._counts = counts
        self._why = ""

    @property
    def failing(self) -> str:
        """The reason why the store refuses notes; empty when it takes them."""
        return self._why

    async def read(self, part: Partition, batch: StreamBatch) -> None:
        """Records the losses in a batch as it was read, before its frontier takes note of it. Raises PositionsGone,
        which stops the tailer, when a loss is not allowed by its file."""
        for first, last in batch.lost:
            await self._forgotten(part, part.frontier.unread(first, last), batch.lost_items)
            part.skip(last, items=batch.lost_items)
        await self._note(part, _ranges(batch.absent), Cause.ABSENT, "", "nothing is there")

    async def gone(self, part: Partition, positions: Iterable[int], batch: StreamBatch) -> None:
        """Records the loss of positions that were read before, but are missing in `batch`, which read them again;
        settles them once that is noted. Raises PositionsGone like `read`."""
        gone = set(positions)
        lost = {position for position in gone if any(first <= position <= last for first, last in batch.lost)}
        await self._forgotten(part, _ranges(lost))
        await self._note(part, _ranges(gone - lost), Cause.ABSENT, "", "its owner took it away")
        part.settle(sorted(lost), Fate.LOST)
        part.settle(sorted(gone - lost), Fate.ABSENT)

    async def _forgotten(self, part: Partition, lost: list[tuple[int, int]], items: int = 0) -> None:
        if not lost:
            return
        if "retention" not in self._allowed:
            some = ", ".join(f"{first} to {last}" for first, last in lost[:3])
            about = f" (about {items} items)" if items else ""
            raise PositionsGone(
                f"positions {some} of partition {part.name}{about} are gone: the source's retention passed them before "
                "they were done. Nothing is lost without your permission: bring the records back, or add "
                f'"allow_loss: [retention]" to the file of "{self._name}" to go on behind them, and start it again'
            )
        await self._note(part, lost, Cause.RETENTION, "allow_loss", "the source's retention passed them", items)
        self._counts.lost += items or sum(last - first + 1 for first, last in lost)

    async def _note(
        self, part: Partition, found: Iterable[tuple[int, int]], cause: Cause, who: str, why: str, items: int = 0
    ) -> None:
        """`items`: how many there are in all, where the ranges do not say."""
        now = self._clock.wall()
        drops = [Drop(first, last, items or last - first + 1, cause, 0, who, why, now) for first, last in found]
        if drops:
            await until_available(
                partial(self._drops.add, self._name, part.name, drops, part.frontier.position), self._failing
            )

    def _failing(self, why: str) -> None:
        self._why = why


def _ranges(positions: Iterable[int]) -> list[tuple[int, int]]:
    return [*ranges(sorted(set(positions)))]
