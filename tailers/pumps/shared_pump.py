"""The pump of a shared source: a stream pump for each partition that is this tailer's share, for as long as it is.

Somebody else (a consumer group) says which partitions those are. Each has a row, an epoch, a checkpoint and a session
of its own, so what is true of one stream is true of each of them, and one that is taken away, or that another owner
still has, concerns no other. The window is the tailer's: it is divided among the partitions.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import structlog

from ...sdk.model.audit import Audit
from ...sdk.model.demand import Closed
from ...sdk.model.errors import NotConnected, StaleFence, UserError
from ...sdk.model.spread import spread
from ...sdk.source import SharedSource
from ..counts import Counts
from ..means import Setup
from ..rules.reconnect import FIRST_PAUSE, LAST_PAUSE, Reconnect
from .stream_pump import StreamPump

log = structlog.get_logger("tailrace.tailer")


class SharedPump:
    """`pumps` are those that run now, by partition. Invariant: a partition has one pump at a time, and a new one begins
    only when the former has left its row.

    source_unreachable  why the share cannot be known; empty when it can
    """

    def __init__(self, setup: Setup, counts: Counts, source: SharedSource) -> None:
        self.setup = setup
        self.config = setup.config
        self.counts = counts
        self.source = source
        self.pumps: dict[str, StreamPump] = {}
        self.draining = False
        self.due: dict[str, int] | None = None
        self._paused = False
        self._reconnect = Reconnect()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Follows the share until cancelled; raises what ends a partition's pump for good."""
        self._failed = asyncio.get_running_loop().create_future()
        following = asyncio.create_task(self._follow(), name=f"share-{self.config.name}")
        try:
            await asyncio.wait([following, self._failed], return_when=asyncio.FIRST_COMPLETED)
            for each in (self._failed, following):
                if each.done():
                    each.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            tasks, self._tasks = [*self._tasks.values()], {}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, *self._leaving.values(), return_exceptions=True)
            self._failed.cancel()
            await self.source.close()

    async def drain(self, timeout: float) -> bool:
        """Reads nothing more and waits until nothing is out; False when `timeout` seconds did not suffice."""
        self.draining = True
        return all(await asyncio.gather(*(pump.drain(timeout) for pump in self.pumps.values())))

    # The share.

    async def _follow(self) -> None:
        known: frozenset[str] = frozenset()
        reopen, now = False, self.setup.clock.monotonic
        while True:
            try:
                if reopen:
                    await self.source.close()
                await self.source.open()
                known = await self.source.changed(known)
            except NotConnected as error:
                lost = self._reconnect.lost(str(error), now())
                if lost.news:
                    log.warning("not connected", tailer=self.config.name, reason=str(error))
                reopen = True
                await asyncio.sleep(spread(lost.pause, random.random))
                continue
            if self._reconnect.reached(now()):
                log.info("connected again", tailer=self.config.name)
            reopen = False
            self._adjust(known)

    def _adjust(self, share: frozenset[str]) -> None:
        """Begins what is new, and leaves what was taken away."""
        for name in sorted(self._tasks.keys() - share):
            former = self._tasks.pop(name)
            self._leaving[name] = asyncio.create_task(self._leave(name, former, self.pumps.get(name)))
        for name in sorted(share - self._tasks.keys()) if not self.draining else ():
            self._tasks[name] = asyncio.create_task(self._serve(name), name=f"tailer-{self.config.name}-{name}")
        self._divide()

    def _divide(self) -> None:
        """The tailer's window, in equal parts."""
        for pump in self.pumps.values():
            pump.window.items = max(1, self.config.window.items // len(self.pumps))
            pump.window.bytes = max(1, self.config.window.bytes // len(self.pumps))

    async def _leave(self, name: str, task: asyncio.Task[None], pump: StreamPump | None) -> None:
        """Ends what is out, within a bound, and then the pump, which commits and releases its row. Whatever of it
        settles later is nobody's: its session is gone."""
        if pump is not None and not await pump.drain(self.source.release_within):
            log.warning("taken away with items out", tailer=self.config.name, partition=name, in_flight=pump.in_flight)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _serve(self, name: str) -> None:
        """One pump after another over a partition, until it is taken away or ends for good."""
        if (leaving := self._leaving.pop(name, None)) is not None:
            await asyncio.gather(leaving, return_exceptions=True)
        pause = FIRST_PAUSE
        while True:
            pump = StreamPump(replace(self.setup, row=name), self.counts, self.source.partition(name))
            pump.paused, pump.draining = self._paused, self.draining
            self.pumps[name] = pump
            self._divide()
            try:
                await pump.run()
            except Exception as error:
                if self._tasks.get(name) is not asyncio.current_task():
                    return  # it was to end, and this is what failed as it did
                if isinstance(error, UserError):
                    self._fail(error)
                    return
                if isinstance(error, StaleFence):
                    pause = FIRST_PAUSE
                    log.warning("another owner took it; standing by", partition=name, reason=str(error))
                else:
                    log.error("a partition's pump failed", partition=name, reason=str(error), exc_info=error)
                await asyncio.sleep(spread(pause, random.random))
                pause = min(LAST_PAUSE, pause * 2)
            finally:
                if self.pumps.get(name) is pump:
                    del self.pumps[name]

    def _fail(self, error: Exception) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    # What people see.

    @property
    def paused(self) -> bool:
        """Whether an operator paused it."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._paused = paused
        for pump in self.pumps.values():
            pump.paused = paused

    def wake(self) -> None:
        """Something changed: every pump looks again."""
        for pump in self.pumps.values():
            pump.wake()

    @property
    def source_unreachable(self) -> str:
        """Why the share cannot be known, or its brokers not be reached."""
        return self._reconnect.why(self.setup.clock.monotonic()) or self.source.problem

    @property
    def in_flight(self) -> int:
        """How many items were pushed and have no outcome."""
        return sum(pump.in_flight for pump in self.pumps.values())

    @property
    def busy(self) -> bool:
        """Whether something is out, or on its way into a store."""
        return any(pump.busy for pump in self.pumps.values())

    @property
    def held(self) -> int:
        """How many items are held by position."""
        return sum(pump.held for pump in self.pumps.values())

    @property
    def lag(self) -> int:
        """Of this share; -1: not known yet."""
        return sum(pump.lag for pump in self.pumps.values()) if all(p.lag >= 0 for p in self.pumps.values()) else -1

    @property
    def unaccounted(self) -> int:
        """How many items the running audit misses or counts twice."""
        return sum(pump.unaccounted for pump in self.pumps.values())

    @property
    def classes(self) -> dict[str, int]:
        """The running audit of this share: how many positions are in which class."""
        counts: Counter[str] = Counter()
        for pump in self.pumps.values():
            counts.update(pump.classes)
        return dict(counts)

    @property
    def outages(self) -> list[Closed]:
        """The functions of this tailer that are clogged."""
        found = {closed.function: closed for pump in self.pumps.values() for closed in pump.outages}
        return list(found.values())

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """What became of every position of each partition of this share, or of a range of one."""
        return [audit for pump in self._sorted() for audit in pump.audits(partition, span)]

    def _sorted(self) -> Iterator[StreamPump]:
        return (self.pumps[name] for name in sorted(self.pumps))
