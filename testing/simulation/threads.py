"""Threads of a simulated process: real ones, of which only the one with the baton runs, while the world waits for it.

So nothing of them depends on who is quicker, and they stand still when their process does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .loop import SimLoop

_HERE = threading.local()


class ProcessGone(BaseException):
    """The process of this thread is gone: it unwinds, unseen."""


class Thread:
    """A thread that waits for its first turn. `go_on` and `end` are for the world; the other methods for the thread
    itself."""

    def __init__(self, target: Callable[[], Any]) -> None:
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._asked: Callable[[], Any] | None = None
        self._answer: Any = None
        self._gone = False
        self._over = False
        self._thread = threading.Thread(target=self._run, args=(target,), name="simulated", daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Lets the thread run until it rests, and does here what it asks for."""
        while not self._over:
            self._go.release()
            self._back.acquire()
            if self._asked is None:
                return
            asked, self._asked = self._asked, None
            self._answer = asked()

    def end(self) -> None:
        """Ends the thread, whose process is gone."""
        self._gone = True
        self.go_on()
        self._thread.join()

    def rest(self) -> None:
        """Waits until it goes on."""
        if not self._gone:
            self._back.release()
            self._go.acquire()
        if self._gone:
            raise ProcessGone

    def ask(self, call: Callable[[], Any]) -> Any:
        """Has the world do something that the thread must not do itself. Raises ProcessGone once its process is
        gone."""
        if self._gone:
            raise ProcessGone
        self._asked = call
        self.rest()
        return self._answer

    def _run(self, target: Callable[[], Any]) -> None:
        _HERE.thread = self
        self._go.acquire()
        try:
            if not self._gone:
                target()
        except ProcessGone:
            pass
        finally:
            self._over = True
            self._back.release()


def this() -> Thread:
    """The thread that runs now."""
    thread: Thread = _HERE.thread
    return thread


class BatonCondition:
    """A threading.Condition among threads of which one runs at a time: none can be in the way of another."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._waiting: deque[Thread] = deque()

    def __enter__(self) -> None:
        """Does nothing: no other thread can be within."""

    def __exit__(self, *error: object) -> None:
        """Does nothing: no other thread waits for that."""

    def wait(self) -> None:
        """Has the calling thread rest until it is notified."""
        self._waiting.append(this())
        this().rest()

    def notify(self) -> None:
        """Lets one waiting thread go on soon."""
        if self._waiting:
            self._loop.call_soon(self._waiting.popleft().go_on)
