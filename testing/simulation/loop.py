"""An event loop without sockets, threads or waiting: the world says when it turns, and its time is its machine's."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from asyncio import events
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from .clock import MachineClock


class SimTask(asyncio.Task[Any]):
    """A task that may be told apart by more than its address (chance.py)."""


class SimFuture(asyncio.Future[Any]):
    """A future likewise."""


class SimLoop(asyncio.BaseEventLoop):
    """The real asyncio machinery over virtual time. `delay` gives the seconds that work in another thread takes.

    ahead   what `next_at` found last
    known   whether it would still find that

    Invariant: nothing of it runs but inside `turn`, and nothing at all once it is `dead`: neither callbacks nor the
    `finally` blocks of its tasks, as in a process that was killed.
    """

    def __init__(self, clock: MachineClock, delay: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__()
        self.ahead: float | None = None
        self.known = False
        self._clock = clock
        self._delay = delay
        self._seen: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._kept: list[asyncio.Task[Any]] = []
        self.dead = False
        self.context: contextvars.Context | None = None  # of what comes from outside
        self.complaints: list[dict[str, Any]] = []
        self.set_task_factory(self._make)
        self.set_exception_handler(lambda loop, context: self.complaints.append(context))

    def _make(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = SimTask(coro, loop=loop, **options)
        self._seen.add(task)
        return task

    def time(self) -> float:
        """The machine's monotonic clock."""
        return self._clock.monotonic()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """What is not called from within has the process's own context."""
        if context is None and events._get_running_loop() is not self:
            context = self.context
        self.known = False
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As everywhere; what comes next may be this."""
        self.known = False
        return super().call_at(when, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self.known = False
        super()._timer_handle_cancelled(handle)  # type: ignore[misc]

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """There are no other threads."""
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
        """A future of this loop."""
        return SimFuture(loop=self)

    def next_at(self) -> float | None:
        """The true time at which it has something to run; 0: now; None: not before something comes from outside."""
        if not self.known:
            self.ahead, self.known = self._look_ahead(), True
        return self.ahead

    def _look_ahead(self) -> float | None:
        if self._ready:  # type: ignore[attr-defined]
            return 0.0
        scheduled: list[Any] = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
        return self._clock.true_at(scheduled[0]._when) if scheduled else None

    def turn(self) -> int:
        """One pass: timers that are due, and what was ready before. Returns how many callbacks ran."""
        self.known = False
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        now = self.time()
        while scheduled and scheduled[0]._when <= now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if handle._cancelled:
                self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            ready.append(handle)
        count = 0
        events._set_running_loop(self)
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle._cancelled:
                    continue
                handle._run()
                count += 1
                if self.dead:
                    break
        finally:
            events._set_running_loop(None)
        return count

    def kill(self) -> None:
        """Ends it as SIGKILL would: what its tasks were doing stays undone, and is kept from being cleaned up."""
        self.dead = True
        self._kept = [task for task in self._seen if not task.done()]

    def dispose(self) -> None:
        """Throws away what is left, after the world has ended: closes coroutines, ignoring what they say."""
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
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.close()


def _answer(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
