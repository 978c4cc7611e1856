"""One lifecycle for everything that runs: start, drain, stop. A part whose duty fails is closed and opened again."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, cast

from ..model.jitter import jittered
from ..model.plain_text import plain
from ..model.reopening import Failures, Trouble
from ..model.units import duration_text
from .clock import SYSTEM_CLOCK, Clock
from .duties import LONGEST_WHY, Duties

_LOG = logging.getLogger("tailrace.parts")


class Part(Protocol):
    """A part: a component that runs.

    start   returns when it is ready to work; raises with a clear message when it cannot be
    drain   takes nothing new, finishes or hands back its work; returns after `timeout` seconds at the latest
    stop    ends now; safe after a failed start, and twice
    """

    async def start(self) -> None: ...

    async def drain(self, timeout: float) -> None: ...

    async def stop(self) -> None: ...


class Attended(Part, Protocol):
    """A part with duties. It can be started again once it was stopped, and its duties end in `stop`."""

    @property
    def duties(self) -> Duties: ...


class OneDuty(ABC):
    """A Part with one duty, from its start to its end."""

    def __init__(self, part: str) -> None:
        self.duties = Duties(part)

    @abstractmethod
    async def work(self) -> None:
        """The duty: goes on until it is cancelled."""

    async def start(self) -> None:
        """Begins the duty."""
        self.duties.begin(self.work(), self.duties.part)

    async def drain(self, timeout: float) -> None:  # noqa: B027 - most wait for nothing
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Ends the duty. Harmless twice."""
        await self.duties.end()


class Reopening:
    """A Part around another one, which is closed and opened again whenever a duty of it fails, after pauses that grow
    (model/reopening.py). Its first start may fail, later ones are tried again."""

    def __init__(
        self, part: Attended, clock: Clock = SYSTEM_CLOCK, chance: Callable[[], float] = random.random
    ) -> None:
        self.part = part
        self._clock = clock
        self._chance = chance
        self._failures = Failures()
        self._why = ""
        self._open = False
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the part, and keeps it open from then on."""
        await self.part.start()
        self._open = True
        self._keeper = asyncio.create_task(self._keep(), name=f"keep-open-{self.part.duties.part}")

    async def drain(self, timeout: float) -> None:
        """Drains the part, if it is open just now."""
        await self._forget()
        if self._open:
            await self.part.drain(timeout)

    async def stop(self) -> None:
        """Stops the part, in any state."""
        await self._forget()
        self._open = False
        await self.part.stop()

    def troubles(self) -> list[Trouble]:
        """Troubles of the part, present ones and those of a while ago; for operators."""
        now, wall, duties = self._clock.monotonic(), self._clock.wall(), self.part.duties
        found = [Trouble(duties.part, wall - (now - since), what) for since, what in duties.failing(now)]
        times = self._failures.recent(now).times
        if times:
            state = "it is open again" if self._open else f"it is closed for {duration_text(self._failures.pause(now))}"
            what = f"it failed {len(times)} times in the last minutes, {state}; {self._why}"
            found.append(Trouble(duties.part, wall - (now - times[0]), what, len(times)))
        return found

    async def _keep(self) -> None:
        while True:
            await self._close(await self.part.duties.failure())
            while not self._open:
                pause = self._failures.pause(self._clock.monotonic())
                _LOG.error("%s: closed; it is opened again in %.1f s. %s", self.part.duties.part, pause, self._why)
                await asyncio.sleep(jittered(pause, self._chance))
                try:
                    await self.part.start()
                except Exception as error:
                    await self._close(plain(error, LONGEST_WHY) or type(error).__name__)
                else:
                    self._open = True
            _LOG.warning("%s: open again", self.part.duties.part)

    async def _close(self, why: str) -> None:
        self._open, self._why = False, why
        self._failures = self._failures.with_failure_at(self._clock.monotonic())
        try:
            await self.part.stop()
        except Exception:
            _LOG.exception("%s: closing it failed; it is opened again all the same", self.part.duties.part)

    async def _forget(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await cancel(keeper)


class Group:
    """Several parts as one: started in order, drained and stopped in reverse; a failed start stops those that had
    started. Parts that have duties are kept open (`Reopening`). If one of them raises as it ends, the others end all
    the same. They share the time of a drain: time that one used is not there for the next."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = [kept_open(part) for part in parts]
        self._started: list[Part] = []

    def also(self, part: Part) -> None:
        """Adds one more part, the last; before the start."""
        self._parts.append(kept_open(part))

    async def start(self) -> None:
        for part in self._parts:
            try:
                await part.start()
            except BaseException:
                self._started.append(part)  # it may have begun something, which ends first
                await self.stop()
                raise
            self._started.append(part)

    async def drain(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout

        def drained(part: Part) -> Awaitable[None]:
            return part.drain(max(0.0, end - loop.time()))

        await each_of([partial(drained, part) for part in reversed(self._started)])

    async def stop(self) -> None:
        started, self._started = self._started, []
        await each_of([part.stop for part in reversed(started)])

    def troubles(self) -> list[Trouble]:
        """Troubles of the parts that are kept open."""
        return [trouble for part in self._parts if isinstance(part, Reopening) for trouble in part.troubles()]


def kept_open(part: Part) -> Part:
    """The part as it is to be run: a part with duties is closed and opened again when one of them fails."""
    return Reopening(cast(Attended, part)) if isinstance(getattr(part, "duties", None), Duties) else part


async def each_of(steps: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Runs one step after the other, all of them, whatever one raises; then raises the first error. For endings."""
    first: Exception | None = None
    for step in steps:
        try:
            await step()
        except Exception as error:
            if first is None:
                first = error
            else:
                _LOG.exception("a further part failed as it ended")
    if first is not None:
        raise first


async def all_of(steps: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Runs all steps at once, whatever one raises; then raises the first error. For endings that take their time and do
    not wait for each other."""
    ended = await asyncio.gather(*(step() for step in steps), return_exceptions=True)
    errors = [error for error in ended if isinstance(error, BaseException)]
    for error in errors[1:]:
        _LOG.error("a further part failed as it ended", exc_info=error)
    if errors:
        raise errors[0]


async def end_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancels the tasks and waits until all have ended; harmless for those that had. Their failures are told to nobody,
    so it is for tasks whose failures were told, or do not matter any more. Raises `CancelledError` only if the caller
    itself is cancelled meanwhile."""
    ending = [*tasks]
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending)
    for task in ending:
        if not task.cancelled():
            task.exception()  # heard, so that asyncio does not complain


async def cancel(task: asyncio.Future[Any]) -> None:
    """Cancels `task` and waits until it has ended; harmless when it had ended already.

    Raises the task's own error, and `CancelledError` only if the caller itself is cancelled meanwhile: with
    `suppress(CancelledError)` around an `await task` that second cancellation would be lost, and its sender would wait
    for ever.
    """
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
