"""Parents: runs that wait for other work (`result()` in a function). Each gives its place to another run meanwhile, and
goes on at once when its wait is over, beyond the number of slots if need be.

They are marked on the board, since a run that only waits cannot have ended its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ..model.errors import InvalidRequest, Throttled
from ..model.outcome import Outcome
from ..model.workload import Ended
from .board import WAITS, Board

#: The end of an item whose run would wait where no more may: it costs nothing, and comes again.
FULL = Ended(Outcome.HELD, "its executor has no room for another run that waits for other work", after=1.0)
#: Seconds that a wait may take when neither the call nor the function has a time-out.
LONGEST = 600.0


class ParentKind(Protocol):
    """One kind of item. `waits`: a run of it has waited for other work here."""

    waits: bool


class Holder(Protocol):
    """The runner of an item: one of the loop's, or a thread's run. Invariant: `key` is the item's while it runs, and
    0 from its end on."""

    key: int
    cell: int
    deadline: float | None
    counted: bool
    threaded: bool

    @property
    def entry(self) -> ParentKind | None: ...


class ParentWait:
    """One wait of one run (foundation/current_run.py)."""

    __slots__ = ("_parents", "_stops", "holder", "key", "limit", "stopped")

    def __init__(self, parents: Parents, holder: Holder, key: int) -> None:
        self._parents = parents
        self._stops: Callable[[], object] | None = None
        self.holder = holder
        self.key = key
        self.stopped = False
        end = holder.deadline
        self.limit = LONGEST if end is None else max(0.0, end - time.monotonic())

    def stops(self, call: Callable[[], object]) -> None:
        """Sets the call that ends this wait when its run is told to end; it is made at once if the run was told so
        already."""
        self._stops = call
        if self.stopped:
            call()

    def stop(self) -> None:
        """Ends the wait, since its run is told to end."""
        self.stopped = True
        if self._stops is not None:
            self._stops()

    def over(self) -> None:
        """Takes note that the run waits no longer. Harmless twice."""
        self._parents.end(self)


class Parents:
    """The parents of one executor. Safe from any thread. `culprit` names the item whose code the event loop is in;
    `changed` is called once until `changes` was asked.

    Invariants: a key is in `open` from its first wait until its last is over or its run has ended, and its cell bears
    the mark as long; there are at most `most` of them; `runners` and `threads` count them by what runs them. `_kin` are
    the runs, waiting or not, of functions of which one has waited here: at most one more of them begins than may wait
    (or than there are `places`, where those are more), so that a flood of them is handed back before it starts, and not
    refused when it has begun. The one more may be what the others wait for, and need not wait itself.
    """

    def __init__(
        self, most: int, places: int, board: Board, culprit: Callable[[], int], changed: Callable[[], None]
    ) -> None:
        self.open: dict[int, list[ParentWait]] = {}
        self.runners = 0
        self.threads = 0
        self._most = most
        self._kin = 0
        self._most_kin = max(most, places)
        self._board = board
        self._culprit = culprit
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._changes: dict[int, bool] = {}

    def admit(self, holder: Holder) -> bool:
        """Whether a run of a function that waits for other work may begin; if so it is counted until it has `ended`."""
        with self._lock:
            holder.counted = self._kin <= self._most_kin
            self._kin += holder.counted
        return holder.counted

    def begin(self, holder: Holder, *, blocking: bool) -> ParentWait | None:
        """Begins a wait of the run of `holder`. None: the caller is none of its code any more. Raises InvalidRequest
        where it may not wait so, and Throttled where too many wait already."""
        if os.getpid() != self._process:
            return None  # a child that it forked
        loop = _running_loop()
        if blocking and loop is not None:
            raise InvalidRequest(
                "result() of a Client would block the event loop of this function and of all that run beside it: "
                "await result() of an AsyncClient, or call it in asyncio.to_thread"
            )
        key = holder.key
        if loop is self._loop and self._culprit() not in (0, key):
            return None  # a task that an earlier item left behind
        if not self._most:
            raise InvalidRequest(
                "this function cannot wait for other work: with isolation='process' it would keep its process from all "
                "others, and `waiting: 0` in a worker's configuration lets none wait. Change that, or return and let "
                "the other work submit what follows"
            )
        with self._lock:
            waits = self.open.get(key)
            if waits is None:
                if not key or holder.key != key:
                    return None
                if len(self.open) >= self._most:
                    raise Throttled(
                        f"{self._most} functions wait for other work in this executor already, and no more may: raise "
                        "`waiting` in the worker's configuration, or return and let the other work submit what follows"
                    )
                if not holder.counted:
                    holder.counted = True
                    self._kin += 1
                if holder.entry is not None:
                    holder.entry.waits = True
                waits = self.open[key] = []
                self._board.cells[holder.cell] = key | WAITS
                self._count(holder, key, 1)
            wait = ParentWait(self, holder, key)
            waits.append(wait)
        return wait

    def end(self, wait: ParentWait) -> None:
        """Ends one wait."""
        with self._lock:
            waits = self.open.get(wait.key, [])
            if wait in waits:
                waits.remove(wait)
                if not waits:
                    del self.open[wait.key]
                    self._board.cells[wait.holder.cell] = wait.key
                    self._count(wait.holder, wait.key, -1)

    def ended(self, holder: Holder) -> None:
        """Ends all waits of a run that has ended. Code that it left behind waits for nobody any more."""
        with self._lock:
            key, holder.key = holder.key, 0
            if holder.counted:
                holder.counted = False
                self._kin -= 1
            if waits := self.open.pop(key, None):
                self._count(waits[0].holder, key, -1)
                self._changes.pop(key, None)

    def stop(self, key: int) -> None:
        """Gives up all waits of a run that was told to end."""
        with self._lock:
            waits = list(self.open.get(key, ()))
        for wait in waits:
            wait.stop()

    def changes(self) -> tuple[list[int], list[int]]:
        """Keys whose first wait began, and keys whose last one is over, since the last call."""
        with self._lock:
            changes, self._changes = self._changes, {}
        return [key for key, waits in changes.items() if waits], [key for key, waits in changes.items() if not waits]

    def _count(self, holder: Holder, key: int, step: int) -> None:
        if holder.threaded:
            self.threads += step
        else:
            self.runners += step
        told = bool(self._changes)
        self._changes[key] = step > 0
        if not told:
            self._changed()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
