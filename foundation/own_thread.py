"""A source's own thread, for calls of the operating system that may never come back: a file server is gone, say.

The threads that asyncio lends are shared: a few calls that hang use them up, and a process waits for them as it ends.
This thread holds up its source alone, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from ..model.errors import NotConnected

#: Seconds without a sign of life after which a call is given up.
PATIENCE = 30.0
#: Seconds without a call after which the thread ends by itself.
IDLE = 60.0

T = TypeVar("T")


class OwnThread:
    """Runs calls one after another. A call that hangs is given up with NotConnected, and so are the calls behind it,
    until it comes back; there is never a second thread.

    Invariant: `_running` is true exactly while there is a thread that will look at `_jobs` again.
    """

    def __init__(self, name: str, patience: float = PATIENCE) -> None:
        self._name = name
        self._patience = patience
        self._condition = threading.Condition()
        self._jobs: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._running = False
        self._closed = False
        self._doing, self._moved = "", 0.0

    def moves(self, doing: str) -> None:
        """Notes that the running call makes progress, and what it does next."""
        self._doing, self._moved = doing, time.monotonic()

    async def call(self, fn: Callable[..., T], *arguments: Any) -> T:
        """Runs `fn` in the thread; returns or raises like it. Raises NotConnected when nothing has moved for longer
        than the patience."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        began = time.monotonic()
        with self._condition:
            self._jobs.append((future, lambda: fn(*arguments)))
            self._closed = False
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            self._condition.notify()
        try:
            while True:
                left = max(began, self._moved) + self._patience - time.monotonic()
                if left <= 0:
                    what = self._doing or self._name
                    raise NotConnected(f"{what} has not come back for {self._patience:g} s: does its file system hang?")
                if (await asyncio.wait([future], timeout=left))[0]:
                    return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Lets the thread end once it has nothing to do; a later call starts another one."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._jobs:
                    if self._closed or not (self._condition.wait(IDLE) or self._jobs):
                        self._running = False
                        return
                future, fn = self._jobs.popleft()
            if future.cancelled():
                continue
            self._moved = time.monotonic()
            result, error = None, None
            try:
                result = fn()
            except BaseException as raised:  # of any kind: it is for the caller
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(_answer, future, result, error)
            del future, fn, result, error


def _answer(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
