"""The pump of a replay: a stream pump with a row, an epoch, fences, a checkpoint and a ledger of its own.

All of these bear the replay's name (`orders@replay-3`), so it reads and writes nothing of the live tailer's.
"""

from __future__ import annotations

from ...model.audit import Fate
from ...model.replay import Replay
from ...stores.checkpoints.checkpoints import Mark
from ..counts import TailerCounts
from ..pumps.stream_pump import StreamPump
from ..resources import Setup
from ..stream_policy import StreamPolicy
from .source import ReplaySource

#: Positions between the chosen ones are filtered; a replay ends when its last item has ended, so nothing is detached.
POLICY = StreamPolicy(gap=Fate.FILTERED, redrives=False, detaches=False)


class ReplayPump(StreamPump):
    """Reads the chosen positions and no others, from its checkpoint on if it was begun before."""

    def __init__(self, setup: Setup, counts: TailerCounts, source: ReplaySource, replay: Replay) -> None:
        super().__init__(setup, counts, source, POLICY._replace(jump=source.jump))
        self._replay = replay
        self._chosen = source

    async def open(self) -> None:
        """Takes its own row, and makes the beginning of each partition durable before anything is read."""
        self._marks = await self._succession.take()
        begin = {
            each.partition: Mark(each.first) for each in self._replay.stretches if each.partition not in self._marks
        }
        if begin:
            await self._epoch.commit(begin)
            self._marks |= begin
        for name in self._marks:
            await self._add(name)
        await self.connecting(self._open_source, self._reopen)

    @property
    def owns(self) -> bool:
        """Whether this process has the replay's row; another one may have it and read, while this one stands by."""
        return bool(self._epoch.number)

    @property
    def settled(self) -> bool:
        """Whether all items were read, and have ended or are durably in the delay service."""
        parts = self._partitions.values()
        read = self._chosen.over and self._core.batches == self._chosen.handed
        return read and not self.busy and not any(part.frontier.unsettled for part in parts)
