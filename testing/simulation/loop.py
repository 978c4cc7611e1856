"""An event loop without sockets, threads or waiting: the world says when it turns, and its time is its machine's."""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from heapq import heappop, heappush
from math import inf
from typing import Any

from .clock import MachineClock


class SimTask(asyncio.Task[Any]):
    """A task that may be told apart by more than its address (chance.py)."""


class SimFuture(asyncio.Future[Any]):
    """A future that may be told apart by more than its address."""


class SimHandle:
    """A callback to be run, as asyncio.Handle without its means for debugging: a world makes a hundred thousand."""

    __slots__ = ("args", "callback", "context", "gone")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.gone = False

    def cancel(self) -> None:
        """Keeps the callback from running."""
        self.gone = True

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.gone


class SimTimer(float):
    """A timer like asyncio.TimerHandle that is a float: the time at which it rings, by its loop's clock. So heaps
    compare timers as floats, in C, and leave those of one moment in the order in which asyncio's would be."""

    callback: Callable[..., Any]
    args: tuple[Any, ...]
    context: contextvars.Context
    gone: bool
    loop: SimLoop

    __slots__ = ("args", "callback", "context", "gone", "loop")

    def cancel(self) -> None:
        """Keeps the timer from ringing."""
        if not self.gone:
            self.gone = True
            self.loop.timer_gone(self)

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.gone

    def when(self) -> float:
        """The time at which it rings."""
        return float(self)


class SimLoop(asyncio.BaseEventLoop):
    """The real asyncio machinery over virtual time. `delay` gives the seconds that work in another thread takes.

    ahead   true time at which it has something to run; 0: now; infinite: not before something comes from outside

    Invariants: `ahead` is kept by whatever changes what there is to run, so that the world may read it at each step.
    Nothing of it runs but inside `turn`, and nothing at all once it is `dead`: neither callbacks nor the `finally`
    blocks of its tasks, as in a process that was killed.
    """

    def __init__(self, clock: MachineClock, delay: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__()
        self.ahead = inf
        self._clock = clock
        self._delay = delay
        self._ready: deque[SimHandle | SimTimer] = deque()
        self._scheduled: list[SimTimer] = []
        self._seen: list[asyncio.Task[Any]] = []
        self._kept: list[asyncio.Task[Any]] = []
        self.dead = False
        self.context: contextvars.Context | None = None  # of what comes from outside
        self.complaints: list[dict[str, Any]] = []
        self.set_task_factory(self._make)
        self.set_exception_handler(lambda loop, context: self.complaints.append(context))

    def _make(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = SimTask(coro, loop=loop, **options)
        self._seen.append(task)
        return task

    def time(self) -> float:
        """The machine's monotonic clock."""
        return self._clock.monotonic()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> SimHandle:
        """Runs a callback in the next pass. A call from outside has the process's own context."""
        if context is None:
            if _get_running_loop() is not self:
                context = self.context
                self._clock.moment.alone = 0
            if context is None:
                context = copy_context()
        self.ahead = 0.0
        handle = SimHandle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> SimTimer:
        """Runs a callback after a delay, as any loop."""
        return self.call_at(self._clock.monotonic() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> SimTimer:
        """Runs a callback at a time, as any loop. It may be the next thing that this loop has to do."""
        timer = SimTimer(when)
        timer.callback, timer.args, timer.loop, timer.gone = callback, args, self, False
        timer.context = copy_context() if context is None else context
        scheduled = self._scheduled
        heappush(scheduled, timer)
        if scheduled[0] is timer and self.ahead:
            self.ahead = self._clock.true_at(timer)
        return timer

    def timer_gone(self, timer: SimTimer) -> None:
        """Looks for the next timer when the first one was cancelled; a cancelled timer is passed over in its turn."""
        scheduled = self._scheduled
        if scheduled and scheduled[0] is timer and self.ahead:
            self._look_ahead()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> SimHandle:
        """Calls `call_soon`: there are no other threads."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Runs at once; the answer comes after the delay of a thread."""
        future = self.create_future()
        try:
            value = func(*args)
        except Exception as error:
            self.call_later(self._delay(), _fail, future, error)
        else:
            self.call_later(self._delay(), _answer, future, value)
        return future

    def create_future(self) -> asyncio.Future[Any]:
        """Makes a future of this loop."""
        return SimFuture(loop=self)

    def _look_ahead(self) -> None:
        if self._ready:
            self.ahead = 0.0
            return
        scheduled = self._scheduled
        while scheduled and scheduled[0].gone:
            heappop(scheduled)
        self.ahead = self._clock.true_at(scheduled[0]) if scheduled else inf

    def turn(self) -> int:
        """Makes one pass: timers that are due, and callbacks that were ready before. Then more, while it has something
        to run and is alone (World.alone). Returns how many more."""
        self.ahead = 0.0
        ready, scheduled, moment = self._ready, self._scheduled, self._clock.moment
        now = self._clock.monotonic()
        more = 0
        _set_running_loop(self)
        try:
            while True:
                while scheduled and scheduled[0] <= now:
                    ready.append(heappop(scheduled))
                for _ in range(len(ready)):
                    handle = ready.popleft()
                    if handle.gone:
                        continue
                    try:
                        handle.context.run(handle.callback, *handle.args)
                    except (KeyboardInterrupt, SystemExit):
                        raise
                    except BaseException as error:
                        message = f"exception in {handle.callback!r}"
                        self.call_exception_handler({"message": message, "exception": error})
                    if self.dead:
                        break
                if not ready or more >= moment.alone or self.dead:
                    break
                more += 1
        finally:
            _set_running_loop(None)
        self._look_ahead()
        return more

    def kill(self) -> None:
        """Ends the loop as SIGKILL would: its tasks stay undone, and are kept from being cleaned up."""
        self.dead = True
        self._kept = [task for task in self._seen if not task.done()]

    def keep(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Adds tasks that were not made by `create_task`, so that they are thrown away in the end, too."""
        self._seen += tasks

    def dispose(self) -> None:
        """Throws away all tasks and callbacks that are left, after the world has ended: closes coroutines, ignoring
        their errors."""
        self.dead = True
        for task in [task for task in self._seen if not task.done()]:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coro = task.get_coro()
            for _ in range(20):
                try:
                    coro.close()
                    break
                except RuntimeError:  # it awaits while it is being closed
                    continue
                except BaseException:
                    break
        self._kept.clear()
        self._ready.clear()
        self._scheduled.clear()
        self.close()


def _answer(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
