"""One tailer: keeps a pump running over its source, pauses and drains it, and tells its state."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..foundation.lifecycle import cancel
from ..foundation.logger import Logger
from ..model.audit import Audit
from ..model.errors import InvalidRequest, NotConnected, StaleFence, TailraceError
from ..model.overview import TailerOverview
from ..model.seek import Move, Seek
from .config import TailerConfig
from .counts import TailerCounts
from .pump_status import PumpStatus
from .pumps.due_pump import DuePump
from .pumps.queue_pump import QueuePump
from .pumps.relay_pump import RelayPump
from .pumps.shared_pump import SharedPump
from .pumps.stream_pump import StreamPump
from .pumps.tailer_pump import TailerPump
from .registry import kind_of
from .resources import Resources, Setup
from .retry_pause import RetryPause
from .rules.pump_restarts import AfterEnd, PumpRestarts
from .rules.watchdog import Watchdog, WatchdogFacts, WatchdogVerdict
from .seek.seeking import Seeking

log = Logger("tailrace.tailer")

#: The pump of a source that is not shared, by the family of the source.
_PUMPS: Mapping[str, Callable[[Setup, TailerCounts, Any], TailerPump]] = {
    "queue": QueuePump,
    "stream": StreamPump,
    "relay": RelayPump,
}
#: The status of a tailer that was not begun.
_NO_PUMP = PumpStatus("failed", "", WatchdogFacts(0))


class Tailer:
    """A part: `start` returns once the configuration is known to be good; the source is reached in the background, and
    `overview()` tells how far that is."""

    def __init__(self, config: TailerConfig, resources: Resources) -> None:
        self.config = config
        self._kind = kind_of(str(config.source["kind"]))
        self._setup = Setup(
            replace(resources.environment, tailer=config.name),
            resources.scheduler,
            resources.parking,
            resources.sizes,
            resources.origin,
            resources.row_cache,
            resources.duties,
            resources.elsewhere,
            config=config,
            kind=self._kind,
        )
        self._options = config.options_for(self._kind)
        self._counts = TailerCounts()
        self._pump: TailerPump | None = None
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._failure = ""
        self._restarts = PumpRestarts()
        self._retry_pause = RetryPause()
        self._seeking = self._draining = self._over = False
        self._watchdog = Watchdog(config.stalled_after)
        self.verdict, self.facts = WatchdogVerdict(), WatchdogFacts(0)

    async def start(self) -> None:
        """Begins. Raises ConfigError, or the error of the kind's `build`, for a source that cannot be built."""
        self._pump = self._build()
        self._begin()

    def _begin(self) -> None:
        self._task = self._setup.duties.begin(self._run(), f"tailer-{self.config.name}")

    async def drain(self, timeout: float) -> None:
        """Reads nothing more; returns when nothing is out any more, when the items that are out belong to another owner
        or will not be heard of for another reason, or after `timeout` seconds."""
        self._draining = True
        self._retry_pause.cut_short()
        pump, task = self._pump, self._task
        if pump is None or task is None or task.done():
            return
        drained = asyncio.create_task(pump.drain(timeout), name=f"tailer-{self.config.name}: drain")
        try:
            await asyncio.wait((drained, task), return_when=asyncio.FIRST_COMPLETED)
            if drained.done() and not drained.result():
                log.warning("drain timed out", tailer=self.config.name, in_flight=pump.status().facts.in_flight)
        finally:
            await cancel(drained)

    async def stop(self) -> None:
        """Ends now. Items that are out come back when their lease is over; nothing is lost."""
        self._over = True
        await self._end()

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel(task)

    @property
    def movable(self) -> bool:
        """Whether another process could have its source: a stream with one owner, which nobody but the tailers
        chooses."""
        return self._kind.family == "stream" and not self._kind.shared and self._kind.name != "due"

    @property
    def paused(self) -> bool:
        """Whether an operator paused it, so that it reads nothing."""
        return self._paused

    def pause(self) -> None:
        """Reads nothing more until `resume`; items that are out go on."""
        self._set_paused(True)

    def resume(self) -> None:
        """Ends a pause. A pump that had failed for good starts again, and one that waits for its next try starts at
        once."""
        self._set_paused(False)
        if self._failure or self._mend:
            self._retry_pause.cut_short()
        if self._failure and (self._task is None or self._task.done()):
            self._pump = self._build()
            self._begin()

    async def seek(self, seek: Seek) -> list[Move]:
        """Moves the checkpoint of a stream by hand, while the tailer is paused or has stopped; then it goes on from
        there, paused as it was. Raises InvalidRequest, with nothing changed, and the errors of the source and the
        stores."""
        pump, name = self._pump, self.config.name
        if pump is not None:
            pump.may_seek()
        stopped = self._task is None or self._task.done()
        if self._seeking or not (stopped or self._paused):
            why = "is being moved already" if self._seeking else f"runs: pause it first (tailrace tailer pause {name})"
            raise InvalidRequest(f"the tailer {name!r} {why}")
        if not stopped and pump is not None and pump.busy:
            out = pump.status().facts.in_flight
            raise InvalidRequest(
                f"{out} items of the tailer {name!r} are still out: wait until they have ended, then seek again"
            )
        source = self._kind.build(self._options, self._setup.environment)
        move = Seeking(self._setup, self._counts, source).move
        if seek.dry_run:
            return await move(seek)
        self._seeking = True
        try:
            await self._end()
            moves = await move(seek)
        finally:
            self._seeking = False
            if not self._over:
                self._pump = self._build()
                self._begin()
        log.warning("checkpoint moved by hand", tailer=name, who=seek.who, why=seek.why, moves=[*map(tuple, moves)])
        return moves

    async def expect(self, *functions: str) -> None:
        """Expects due items of these functions from now on; for the tailer of due retries. A function that cannot be
        looked at now is found later."""
        if self._pump is not None:
            with contextlib.suppress(TailraceError):
                await self._pump.expect(*functions)

    def look(self) -> bool:
        """Looks at its progress, about once a second; returns whether it is healthy. See rules/watchdog.py."""
        pump = self._pump
        if pump is not None and not pump.draining:
            over = self._task is None or self._task.done()
            failed = self._failure if over else ""
            self.facts = pump.status().facts._replace(failed=failed, by_hand=self._mend)
            self.verdict = self._watchdog.look(self.facts, self._setup.clock.monotonic())
        return self.verdict.healthy

    def overview(self) -> TailerOverview:
        """The state of the tailer, for people."""
        counts, verdict = self._counts, self.verdict
        status = _NO_PUMP if self._pump is None else self._pump.status()
        state, detail = status.state, status.detail
        if self._failure or self._pump is None:
            state, detail = "failed", self._failure
        elif self._mend:
            state, detail = "failed", self._mend
        if self._seeking:
            state, detail = "paused", "its checkpoint is being moved"
        return TailerOverview(
            name=self.config.name,
            kind=self._kind.name,
            state=state,
            read=counts.read,
            settled=counts.settled,
            parked=counts.parked,
            dead=counts.dead,
            dropped=counts.dropped,
            lost=counts.lost,
            in_flight=status.facts.in_flight,
            held=status.facts.held,
            lag=status.lag,
            detail=detail,
            unaccounted=status.unaccounted,
            classes=dict(status.classes),
            since=status.since,
            healthy=verdict.healthy,
            idle=verdict.idle,
            cause=verdict.cause.value,
            why=verdict.why,
            stale_writes=counts.stale_writes,
            unreadable=counts.unreadable,
            ages=counts.ageing.ages(self._setup.clock.wall()),
        )

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """The audit of each partition, or of a range of one. Raises InvalidRequest for a range that is none or a source
        without positions, NotConnected while the tailer does not run."""
        pump = self._pump
        if pump is None:
            raise NotConnected(f"the tailer {self.config.name!r} does not run: {self._failure or 'it is stopped'}")
        found = pump.audits(partition, span)
        if self._failure and not found:
            raise NotConnected(f"the tailer {self.config.name!r} does not run: {self._failure}")
        return found

    @property
    def _mend(self) -> str:
        """The fault that a person must mend, while the tailer tries again by itself; empty: it is well, or has
        stopped."""
        now, pump = self._setup.clock.monotonic(), self._pump
        return self._restarts.why(now) or ("" if pump is None else pump.needs_a_hand)

    def _set_paused(self, paused: bool) -> None:
        self._paused = paused
        if self._pump is not None:
            self._pump.pause(paused)

    def _build(self) -> TailerPump:
        self._failure = ""
        pump = self.pump_over(self._setup)
        pump.pause(self._paused)
        return pump

    def pump_over(self, setup: Setup) -> TailerPump:
        """A new pump for its kind of source."""
        kind = self._kind
        source = kind.build(self._options, setup.environment)
        if kind.shared:
            return SharedPump(setup, self._counts, source)
        if kind.name == "due":
            return DuePump(setup, self._counts, source)
        return _PUMPS[kind.family](setup, self._counts, source)

    async def _run(self) -> None:
        """Runs one pump after another, until one ends for a reason after which none may be begun."""
        clock = self._setup.clock
        while True:
            self._restarts.began(clock.monotonic())
            noted = self._retry_pause.cuts
            try:
                if self._failure:
                    self._pump = self._build()
                assert self._pump is not None
                await self._pump.run()
            except Exception as raised:
                if self._task is not asyncio.current_task():  # it was to end, and failed as it ended
                    raise asyncio.CancelledError from raised
                error = raised
            else:
                return
            self._failure = str(error) or type(error).__name__
            if not self._draining:
                ended = self._restarts.ended(error, clock.monotonic())
                self._say(error, ended)
                if ended.pause is None:
                    return
                await self._retry_pause.wait(ended.pause, noted)
            if self._draining:
                log.info("ended as it drained", tailer=self.config.name, reason=self._failure)
                return

    def _say(self, error: Exception, ended: AfterEnd) -> None:
        name, reason = self.config.name, self._failure
        if isinstance(error, StaleFence):
            log.warning("another owner took the source; standing by", tailer=name, reason=reason)
        elif ended.pause is None:
            log.error("tailer stopped", tailer=name, reason=reason)
        elif not ended.by_hand:
            log.error("tailer failed, starting again", tailer=name, reason=reason, exc_info=error)
        elif ended.news:
            log.error("tailer failed, trying again until its cause is mended", tailer=name, reason=reason)
