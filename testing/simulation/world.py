"""The world: true time, the events to come, and the one source of chance. One thread drives every host."""

from __future__ import annotations

import gc
import hashlib
import heapq
import random
import sys
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, Protocol

#: Turns at one and the same moment after which the world says that somebody spins.
SPINNING = 20_000


class Turning(Protocol):
    """An event loop as the world drives it: see SimLoop."""

    @property
    def ahead(self) -> float: ...

    def turn(self) -> int: ...


class Running(Protocol):
    """A host: its loop (None: it is down) and whether it is frozen."""

    name: str

    @property
    def loop(self) -> Turning | None: ...

    @property
    def frozen(self) -> bool: ...

    def dispose(self) -> None: ...


class Event(NamedTuple):
    """A line of the trace. `time` is true time, seconds since the beginning."""

    time: float
    host: str
    what: str

    def __str__(self) -> str:
        return f"{self.time:11.6f}  {self.host:<12} {self.what}"


class Spinning(Exception):
    """Spinning: something runs again and again while no time passes."""


class World:
    """The world of one seed. Invariants: true time never goes back; what happens next depends on nothing but the seed
    and what happened before. `keep_trace`: whether lines of the trace are kept beside their hash.

    turning   loops that may turn, in the order of their hosts; None: somebody came or went, it is made anew
    alone     so many turns more the loop that turns may take at once: nobody else has anything to do at this moment.
              Whoever gives another something to do meanwhile makes it 0
    """

    def __init__(self, seed: int, *, keep_trace: bool = False) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.hosts: list[Running] = []
        self.turning: list[Turning] | None = None
        self.alone = 0
        self.trace: list[Event] = []
        self.steps = 0
        self.happened: Counter[str] = Counter()
        self._keep_trace = keep_trace
        self._hash = hashlib.blake2b(digest_size=16)
        self._events: list[tuple[float, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbered = 0
        self._here = 0

    def true(self) -> float:
        """True time, for clocks."""
        return self.now

    def say(self, host: str, what: str) -> None:
        """Adds a line to the trace."""
        self._hash.update(f"{self.now!r} {host} {what}\n".encode())
        if self._keep_trace:
            self.trace.append(Event(self.now, host, what))

    def count(self, what: str) -> None:
        """Counts an event that a run is to show."""
        self.happened[what] += 1

    def note(self, host: str, what: str) -> None:
        """Adds a line for readers only, which is not part of what is compared."""
        if self._keep_trace:
            self.trace.append(Event(self.now, host, what))

    @property
    def hash(self) -> str:
        """A hash of all that was said, equal for equal stories."""
        return self._hash.hexdigest()

    def at(self, time: float, call: Callable[..., None], *args: Any) -> None:
        """Calls a function outside of every host at a true time. Calls of one moment come in a seeded order."""
        self._numbered += 1
        if time <= self.now:
            time = self.now
            self.alone = 0
        heapq.heappush(self._events, (time, self.random.random(), self._numbered, call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        """Calls a function after so many true seconds, as `at` does."""
        self.at(self.now + delay, call, *args)

    def run(self, until: float) -> None:
        """Lets time pass until `until`, which is now in the end: one event, or turns of one loop, after the other."""
        events = self._events
        while True:
            now = self.now
            turning = self._gathered() if self.turning is None else self.turning
            best, chosen = events[0][0] if events else inf, None
            ties: list[Turning] | None = None
            for loop in turning:
                at = loop.ahead
                if at > best:
                    continue
                if at < now:  # noqa: PLR1730 - a call of max() at each step is a twentieth of a world
                    at = now
                if at < best:
                    best, chosen, ties = at, loop, None
                elif at < inf:
                    if ties is None:
                        ties = [] if chosen is None else [chosen]
                    ties.append(loop)
            if best > until:
                self.now = max(now, until)
                return
            self._here = self._here + 1 if best == now else 0
            if ties:
                others = len(ties) + (1 if events and events[0][0] <= best else 0)
                pick = self.random.randrange(others)
                chosen = ties[pick] if pick < len(ties) else None
            if self._here > SPINNING:
                raise Spinning(f"more than {SPINNING} turns at {now:.6f} s")
            self.now = best
            self.steps += 1
            if chosen is None:
                _, _, _, call, args = heapq.heappop(events)
                call(*args)
            else:
                self.alone = 0 if ties else SPINNING - self._here
                more = chosen.turn()
                self.steps += more
                self._here += more

    def _gathered(self) -> list[Turning]:
        self.turning = [host.loop for host in self.hosts if host.loop is not None and not host.frozen]
        return self.turning

    def dispose(self) -> None:
        """Ends the world: frees everything that its hosts held."""
        hook, sys.unraisablehook = sys.unraisablehook, lambda args: None
        try:
            for host in self.hosts:
                host.dispose()
            gc.collect()  # what is left in cycles says its last words here, to nobody
        finally:
            sys.unraisablehook = hook
