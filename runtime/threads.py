"""The threads of an executor that run `def` functions. A hop through concurrent.futures costs 150 µs an item; here a
thread takes the next item itself and outcomes go back in batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from ..model.outcome import Outcome
from ..model.workload import Ended
from ..sdk.context import Context
from .board import Board
from .entry import ENTRY, KEY, Item, PreparedKind
from .parents import Parents, ParentWait
from .rules import attempt
from .rules.attempt import Stop
from .rules.dispatch import SlotQueue

#: Name of these threads.
THREAD = "tailrace-run"
#: The end of an item that no thread could be had for: not its own failure.
NO_THREAD = Ended(Outcome.HELD, "its executor could not start a thread: memory or the system's bound on threads")


class ThreadRun:
    """One item that runs in a thread."""

    __slots__ = ("cell", "context", "counted", "deadline", "entry", "key", "over", "parents", "stop")
    threaded = True

    def __init__(self, key: int, cell: int, parents: Parents, entry: PreparedKind | None = None) -> None:
        self.key = key
        self.entry = entry
        self.counted = False
        self.cell = cell
        self.parents = parents
        self.deadline: float | None = None
        self.over = False  # its end was noted
        self.stop = Stop.NONE
        self.context: Context | None = None

    def ask(self, why: Stop) -> None:
        """Asks the run to end: a thread cannot be stopped, but its function can look at `ctx.cancelled`."""
        self.stop = why
        if self.context is not None:
            self.context.cancelled = True
        self.parents.stop(self.key)

    def wait(self, *, blocking: bool) -> ParentWait | None:
        """Begins a wait of the run for other work (foundation/current_run.py)."""
        return self.parents.begin(self, blocking=blocking)


class Threads:
    """The threads of an executor: at most `limit`, and one for each run that waits for other work, started when there
    is work. `run` runs one item and returns its end; `wake` tells the loop that ends can be collected, at most once
    until they are."""

    def __init__(
        self,
        limit: int,
        first_cell: int,
        board: Board,
        parents: Parents,
        run: Callable[[Item, ThreadRun], Ended | None],
        wake: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._first_cell = first_cell
        self._board = board
        self._parents = parents
        self._run = run
        self._wake = wake
        self._condition = threading.Condition()
        self._waiting: SlotQueue[Item] = SlotQueue()
        self._runs: list[ThreadRun | None] = []  # by place
        self._free: list[int] = []  # places whose thread ended
        self._idle = 0
        self._rousing = False
        self._ended: deque[tuple[int, Ended | None]] = deque()
        self._woken = False
        self._quick = False  # the last look found something

    def push(self, items: Iterable[Item]) -> None:
        """Adds items; one thread wakes, and each that takes an item wakes the next while more wait."""
        with self._condition:
            for item in items:
                self._waiting.push(item[ENTRY].priority, item)
            self._rouse()

    def _rouse(self) -> None:
        """Wakes or starts one thread, unless one is on its way: a hundred woken at once only fight over the interpreter
        lock. Called with the condition held."""
        if self._rousing or not len(self._waiting):
            return
        if self._idle:
            self._rousing = True
            self._condition.notify()
        elif self._crowd() < 0:
            if not self._free:
                self._free.append(len(self._runs))
                self._runs.append(None)
            place = self._free.pop()
            try:
                self._start(place)
                self._rousing = True
            except RuntimeError:
                self._free.append(place)
                self._hand_back()

    def _hand_back(self) -> None:
        """Hands waiting items back, unharmed, when the system gives no thread and none runs; a thread that runs takes
        them."""
        if len(self._free) == len(self._runs):
            self._ended.extend((item[KEY], NO_THREAD) for item in self._waiting.take(lambda item: True))
            self._wake()

    def _start(self, place: int) -> None:
        threading.Thread(target=self._work, args=(place,), name=THREAD, daemon=True).start()

    def _crowd(self) -> int:
        """Number of threads above the limit; below 0: so many more may start."""
        return len(self._runs) - len(self._free) - self._limit - self._parents.threads

    def rouse(self) -> None:
        """Wakes or starts a thread, since a run began to wait for other work, or goes on."""
        with self._condition:
            self._rouse()

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

    def _work(self, place: int) -> None:
        """Runs items until the thread ends. An exception that a function left to be raised later (a time-out library's)
        may come anywhere, and there may be no memory: then the item ends, and another thread takes its place."""
        try:
            self._run_all(place)
        except BaseException as error:
            self._leave(place, error)
            raise

    def _leave(self, place: int, error: BaseException) -> None:
        run, self._runs[place] = self._runs[place], None
        if run is not None:
            key = run.key
            self._parents.ended(run)
            if not run.over:
                self._ended.append((key, attempt.raised(error, run.stop)))
        with self._condition:
            self._free.append(place)
            self._rousing = False  # the thread that was on its way may have been this one
            self._rouse()
        self._wake()

    def _run_all(self, place: int) -> None:
        cells, cell, runs = self._board.cells, self._first_cell + place, self._runs
        roused = True
        while True:
            with self._condition:
                while (crowded := self._crowd() > 0) or (item := self._waiting.pop()) is None:
                    if crowded:  # it took the place of one that waited, and that goes on
                        self._free.append(place)
                        self._rousing = self._rousing and not roused
                        return self._rouse()
                    if roused:
                        self._rousing = False
                    self._idle += 1
                    try:
                        self._condition.wait()
                    finally:
                        self._idle -= 1
                    roused = True
                key = item[KEY]
                runs[place] = run = ThreadRun(key, cell, self._parents, item[ENTRY])
                if roused:
                    roused = self._rousing = False
                self._rouse()
            cells[cell] = key
            ended = self._run(item, run)
            run.over = True
            self._ended.append((key, ended))
            self._parents.ended(run)
            runs[place] = None
            del ended, run, item  # a thread that rests keeps nothing of its last run
            if not self._woken:
                self._woken = True
                self._wake()
