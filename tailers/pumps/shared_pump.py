"""The pump of a shared source: a stream pump for each partition that is this tailer's share, for as long as it is.

Another party (a consumer group) says which partitions these are. Each has a row, an epoch, a checkpoint and a session
of its own, so each keeps every law of a single stream, and one that is taken away, or that another owner still has,
concerns no other. The window is the tailer's: it is divided among the partitions.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from functools import partial

from ...foundation.lifecycle import cancel, end_all
from ...foundation.logger import Logger
from ...model.audit import Audit
from ...model.errors import InvalidRequest, NotConnected, StaleFence
from ...model.jitter import jittered
from ...sdk.source import SharedSource
from ..counts import TailerCounts
from ..pump_status import PumpStatus, worst_of
from ..resources import Setup
from ..retry_pause import RetryPause
from ..rules.pump_restarts import AfterEnd, PumpRestarts
from ..rules.reconnect import Reconnect
from .stream_pump import StreamPump

log = Logger("tailrace.tailer")


class SharedPump:
    """The pump of one shared source. `pumps` are the stream pumps that run now, by partition.

    Invariants: a partition has one pump at a time, and a new one begins when the former has left its row, however often
    the group gives and takes it meanwhile; `_serving` has every task that may have a pump, `_leaving` the tasks that
    end one, until it is out of its row; `_ended_pumps` has the last pump of a partition without one, for its
    audit.

    source_unreachable why the share cannot be known; empty when it can
    """

    def __init__(self, setup: Setup, counts: TailerCounts, source: SharedSource) -> None:
        self.setup = setup
        self.config = setup.config
        self.counts = counts
        self.source = source
        self.pumps: dict[str, StreamPump] = {}
        self.draining = False
        self._paused = False
        self._reconnect = Reconnect()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._ended_pumps: dict[str, StreamPump] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._restarts: dict[str, PumpRestarts] = {}
        self._retry_pause = RetryPause()
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Follows the share until cancelled; raises the error that ends a partition's pump for good."""
        self._failed = asyncio.get_running_loop().create_future()
        following = asyncio.create_task(self._follow(), name=f"share-{self.config.name}")
        try:
            await asyncio.wait([following, self._failed], return_when=asyncio.FIRST_COMPLETED)
            for each in (self._failed, following):
                if each.done():
                    each.result()
        finally:
            await end_all([following])
            tasks, self._tasks = [*self._tasks.values()], {}
            leaving = [*self._leaving.values()]  # items that are out are not waited for any more
            for task in (*tasks, *leaving):
                task.cancel()
            await asyncio.gather(*leaving, return_exceptions=True)
            await self._ended(*self._serving)
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
                await asyncio.sleep(jittered(lost.pause, random.random))
                continue
            if self._reconnect.reached(now()):
                log.info("connected again", tailer=self.config.name)
            reopen = False
            self._adjust(known)

    def _adjust(self, share: frozenset[str]) -> None:
        """Begins partitions that are new, and leaves those that were taken away."""
        for name in sorted(self._tasks.keys() - share):
            self._take(name)
        for name in sorted(share - self._tasks.keys()) if not self.draining else ():
            self._give(name)
        self._divide()

    def _give(self, name: str) -> None:
        serving = self._serve(name, self._leaving.get(name))
        task = self._tasks[name] = asyncio.create_task(serving, name=f"tailer-{self.config.name}-{name}")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    def _take(self, name: str) -> None:
        before = self._leaving.get(name)
        leaving = self._leave(name, self._tasks.pop(name), before)
        task = self._leaving[name] = asyncio.create_task(leaving, name=f"tailer-{self.config.name}-{name}: leaving")
        task.add_done_callback(partial(self._left, name))

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(name) is task:
            del self._leaving[name]

    def _divide(self) -> None:
        """Divides the tailer's window among the partitions, in equal parts."""
        for pump in self.pumps.values():
            pump.window.items = max(1, self.config.window.items // len(self.pumps))
            pump.window.bytes = max(1, self.config.window.bytes // len(self.pumps))

    async def _leave(self, name: str, task: asyncio.Task[None], before: asyncio.Task[None] | None) -> None:
        """Waits for items that are out, within a bound, then ends the pump, which commits and releases its row. An
        outcome that comes later is nobody's: the session is gone. While a leave `before` is still under way, the
        partition's pump is that one's: this one has none yet."""
        pump = self.pumps.get(name) if before is None else None
        try:
            if pump is not None:
                await self._drained(name, pump, task)
        finally:
            await self._ended(task)
            self._ended_pumps.pop(name, None)
            if before is not None:
                await asyncio.wait([before])

    async def _drained(self, name: str, pump: StreamPump, task: asyncio.Task[None]) -> None:
        """Waits for items that are out, within the bound; no longer than the pump runs, since no outcome is heard of
        after that."""
        drained = asyncio.create_task(pump.drain(self.source.release_within))
        try:
            await asyncio.wait((drained, task), return_when=asyncio.FIRST_COMPLETED)
            if drained.done() and not drained.result():
                log.warning(
                    "partition taken away with items out",
                    tailer=self.config.name,
                    partition=name,
                    in_flight=pump.in_flight,
                )
        finally:
            await cancel(drained)

    async def _ended(self, *tasks: asyncio.Task[None]) -> None:
        """Ends tasks. One that is on its way out already is not cut short as it leaves its row."""
        for task in tasks:
            if not task.cancelling():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, name: str, leaving: asyncio.Task[None] | None) -> None:
        """Runs one pump after another over a partition, until it is taken away or ends for good. The former pump here
        must be out of its row first."""
        if leaving is not None:
            await asyncio.wait([leaving])  # which goes on when this one ends
        restarts, now = self._restarts.setdefault(name, PumpRestarts()), self.setup.clock.monotonic
        while True:
            restarts.began(now())
            noted = self._retry_pause.cuts
            try:
                await self._pump(name)
            except Exception as error:
                if self._tasks.get(name) is not asyncio.current_task():
                    return  # it was to end, and this error came as it did
                ended = restarts.ended(error, now())
                if ended.pause is None:
                    self._fail(error)
                    return
                self._say(name, error, ended)
                await self._retry_pause.wait(ended.pause, noted)

    async def _pump(self, name: str) -> None:
        """Runs one pump to its end."""
        pump = StreamPump(replace(self.setup, row=name), self.counts, self.source.partition(name))
        pump.paused, pump.draining = self._paused, self.draining
        self.pumps[name] = pump
        self._divide()
        try:
            await pump.run()
        finally:
            del self.pumps[name]
            self._ended_pumps[name] = pump

    def _say(self, name: str, error: Exception, ended: AfterEnd) -> None:
        if isinstance(error, StaleFence):
            log.warning("another owner took the partition; standing by", partition=name, reason=str(error))
        elif not ended.by_hand:
            log.error("a partition's pump failed", partition=name, reason=str(error), exc_info=error)
        elif ended.news:
            log.error(
                "a partition's pump failed; it is tried again until the cause is mended",
                partition=name,
                reason=str(error),
            )

    def _fail(self, error: Exception) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    # For people.

    def pause(self, paused: bool) -> None:
        """Reads nothing more, or goes on; a pump that waits to be begun again is begun at once."""
        self._paused = paused
        self._retry_pause.cut_short()
        for pump in self.pumps.values():
            pump.pause(paused)

    def status(self) -> PumpStatus:
        """The state of all partitions together, by the worst of them."""
        partitions = {name: pump.status() for name, pump in self.pumps.items()}
        return worst_of(partitions, self.counts.completed, self._paused, self.source_unreachable)

    def may_seek(self) -> None:
        """Raises InvalidRequest: each partition has a checkpoint of its own, here or at another owner."""
        raise InvalidRequest(
            f"the tailer {self.config.name!r} shares its source ({self.setup.kind.name}) with other group members: "
            "each partition has a checkpoint of its own, and there is no single one to move"
        )

    async def expect(self, *functions: str) -> None:
        """Does nothing: no item of a shared source comes due."""

    @property
    def source_unreachable(self) -> str:
        """The reason why the share cannot be known, or its brokers not be reached; empty when they can."""
        return self._reconnect.why(self.setup.clock.monotonic()) or self.source.problem

    @property
    def needs_a_hand(self) -> str:
        """The cause that somebody must mend before some partition goes on; empty when there is none."""
        now = self.setup.clock.monotonic()
        return next((f"partition {name}: {why}" for name in sorted(self._tasks) if (why := self._why(name, now))), "")

    def _why(self, name: str, now: float) -> str:
        return self._restarts[name].why(now) if name in self._restarts else ""

    @property
    def busy(self) -> bool:
        """Whether something is out, or on its way into a store."""
        return any(pump.busy for pump in self.pumps.values())

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """Audits of the partitions of this share: how every position of each, or of a range of one, ended."""
        pumps = self._ended_pumps | self.pumps
        return [audit for name in sorted(pumps) for audit in pumps[name].audits(partition, span)]
