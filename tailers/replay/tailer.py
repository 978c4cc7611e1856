"""The tailer of one replay: the live tailer's file, under a name and a priority of its own, over chosen positions.

Row, epoch, fences, checkpoint and ledger bear the replay's name (`orders@replay-3`), so it reads and writes nothing of
the live tailer's.
"""

from __future__ import annotations

from dataclasses import replace

from ...model.audit import Fate
from ...model.replay import Replay
from ...stores.checkpoints.checkpoints import Mark
from ..config import TailerConfig
from ..counts import TailerCounts
from ..pumps.stream_pump import StreamPump
from ..pumps.tailer_pump import TailerPump
from ..resources import Resources, Setup
from ..stream_policy import StreamPolicy
from ..tailer import Tailer
from .plan import reader_of
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


def replay_config(config: TailerConfig, replay: Replay) -> TailerConfig:
    """The live tailer's configuration for its replay. Deadlines do not hold: the past was asked for, so it is run."""
    priority = replay.priority or config.priority
    return config.model_copy(update={"name": replay.name, "priority": priority, "expires": None})


class ReplayTailer(Tailer):
    """The tailer of one replay. `config` is the live tailer's."""

    def __init__(self, replay: Replay, config: TailerConfig, resources: Resources) -> None:
        self._replay = replay
        self._live = config
        self._live_environment = replace(resources.environment, tailer=config.name)
        super().__init__(replay_config(config, replay), resources)
        self._stopped_at: float | None = None
        self._reading: ReplayPump | None = None

    def pump_over(self, setup: Setup) -> TailerPump:
        reader = reader_of(self._kind, self._live, self._live_environment)
        source = ReplaySource(reader, self._replay, setup.clock)
        self._reading = ReplayPump(setup, self._counts, source, self._replay)
        return self._reading

    def hold(self, paused: bool) -> None:
        """Pauses or resumes the replay, unless it is so already."""
        if paused is not self._paused:
            self._set_paused(paused)

    def try_again(self, after: float) -> None:
        """Starts a tailer that had to stop again, `after` seconds later; to be called now and then."""
        if self._task is not None and not self._task.done():
            self._stopped_at = None
            return
        now = self._setup.clock.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
        elif now >= self._stopped_at + after and not self._paused:
            self._stopped_at = None
            self.resume()

    @property
    def owns(self) -> bool:
        """Whether this process reads the replay; else another one does, or none yet."""
        return self._reading is not None and self._reading.owns

    @property
    def settled(self) -> bool:
        """Whether its source is done: all items were read, and have ended or wait for a retry."""
        return self._reading is not None and self._reading.settled

    @property
    def busy(self) -> bool:
        """Whether items are out, or on their way into a store."""
        return self._pump is not None and self._pump.busy
