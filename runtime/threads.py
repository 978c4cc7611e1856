"""The threads of an executor that run `def` functions. A hop through concurrent.futures costs 150 µs an item; here a
thread takes the next item itself and outcomes go back in batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from ..sdk.context import Context
from ..sdk.model.workload import Ended
from .board import Board
from .entry import Item
from .rules.attempt import Stop
from .rules.dispatch import Waiting

#: Name of these threads.
THREAD = "tailrace-run"


class Run:
    """One item in a thread, for those who want to stop it."""

    __slots__ = ("context", "key", "stop")

    def __init__(self, key: int) -> None:
        self.key = key
        self.stop = Stop.NONE
        self.context: Context | None = None

    def ask(self, why: Stop) -> None:
        """Asks it to end: a thread cannot be stopped, but its function can look at `ctx.cancelled`."""
        self.stop = why
        if self.context is not None:
            self.context.cancelled = True


class Threads:
    """At most `limit` threads, started when there is work. `run` runs one item and returns its end; `wake` tells the
    loop that ends can be collected, at most once until they are."""

    def __init__(
        self,
        limit: int,
        first_cell: int,
        board: Board,
        run: Callable[[Item, Run], Ended | None],
        wake: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._first_cell = first_cell
        self._board = board
        self._run = run
        self._wake = wake
        self._condition = threading.Condition()
        self._waiting: Waiting[Item] = Waiting()
        self._runs: list[Run | None] = []
        self._idle = 0
        self._rousing = False
        self._ended: deque[tuple[int, Ended | None]] = deque()
        self._woken = False
        self._quick = False  # the last look found something

    def push(self, items: Iterable[Item]) -> None:
        """Adds items; one thread wakes, and each that takes an item wakes the next while more wait."""
        with self._condition:
            for item in items:
                self._waiting.push(item[1].priority, item)
            self._rouse()

    def _rouse(self) -> None:
        """Wakes or starts one thread, unless one is on its way: a hundred woken at once only fight over the interpreter
        lock. Called with the condition held."""
        if self._rousing or not len(self._waiting):
            return
        if self._idle:
            self._rousing = True
            self._condition.notify()
        elif len(self._runs) < self._limit:
            self._rousing = True
            cell = self._first_cell + len(self._runs)
            self._runs.append(None)
            place = (len(self._runs) - 1, cell)
            threading.Thread(target=self._work, args=place, name=THREAD, daemon=True).start()

    def take(self, wanted: Callable[[Item], bool]) -> list[Item]:
        """Removes and returns items that have not started."""
        with self._condition:
            return self._waiting.take(wanted)

    def stop(self, keys: set[int], why: Stop) -> None:
        """Asks running items to end."""
        for run in list(self._runs):
            if run is not None and run.key in keys:
                run.ask(why)

    def collect(self) -> list[tuple[int, Ended | None]]:
        """The ends since the last call."""
        ended, collected = self._ended, []
        while ended:
            collected.append(ended.popleft())
        self._quick = bool(collected)
        return collected

    def rest(self) -> bool:
        """Asks for a wake at the next end. False: look again soon instead, since items wait and end quickly: waking the
        loop for each would hand the interpreter lock to and fro, which costs more than a small function."""
        if self._quick and len(self._waiting):
            return False
        self._woken = False
        return not self._ended

    def _work(self, index: int, cell: int) -> None:
        cells = self._board.cells
        roused = True
        while True:
            with self._condition:
                while (item := self._waiting.pop()) is None:
                    if roused:
                        self._rousing = False
                    self._idle += 1
                    self._condition.wait()
                    self._idle -= 1
                    roused = True
                if roused:
                    roused = self._rousing = False
                self._rouse()
            key = item[0]
            cells[cell] = key
            self._runs[index] = run = Run(key)
            ended = self._run(item, run)
            self._runs[index] = None
            self._ended.append((key, ended))
            cells[cell] = 0
            if not self._woken:
                self._woken = True
                self._wake()
