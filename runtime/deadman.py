"""The kernel timer that enforces the stop (L7): no process goes on past the lease of what is in it, awake or frozen.

It is set to the earliest deadline of the items in the process. Deadlines are absolute CLOCK_MONOTONIC times (L6). The
timers are in `kernel_timer.py`; one that takes a delay rather than a time is set through `Relative`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: Arming may take this long before a timer counts as set too late, in seconds.
LATE = 0.001
#: The shortest delay: zero would disarm it.
AT_ONCE = 1e-6


class Relative:
    """A timer that takes a delay, as one that takes an absolute time (0: never). After arming the clock is read again:
    had the process been frozen between computing and arming, the timer would ring too late, so it is shortened."""

    def __init__(self, arm: Callable[[float], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._arm = arm
        self._clock = clock

    def __call__(self, deadline: float) -> None:
        if not deadline:
            self._arm(0.0)
            return
        now = self._clock()
        while True:
            self._arm(max(AT_ONCE, deadline - now))
            again = self._clock()
            if again - now <= LATE:
                return
            now = again


class Deadman:
    """Keeps the timer at the earliest deadline. Safe from several threads.

    `arm` sets the timer to an absolute time (0: never); `told` records that time where it can be read when the process
    has died: before arming if the timer rings sooner now, after it if later.
    A supervisor's `Timer` covers every assignment up to its number; those that came later are kept apart with their own
    deadlines, since control and work travel on different sockets. It also covers an assignment that is admitted only
    after it came, as while a function blocked the loop: the deadline in the assignment is older than the `Timer`.
    Invariants: while anything is in the process the timer is armed, at or before the earliest deadline; when nothing
    is, it is off. A process that its timer ended had been told no later time than it died at.
    """

    def __init__(
        self,
        arm: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
        told: Callable[[float], None] = lambda deadline: None,
    ) -> None:
        self._arm = arm
        self._clock = clock
        self._told = told
        self._lock = threading.Lock()
        self._inside = 0
        self._covered = 0  # the last assignment that `_known` speaks for
        self._renewed = 0.0  # the deadline in the last `Timer`
        self._known: float | None = None  # the same, while anything of it is inside
        self._later: dict[int, float] = {}  # assignment → deadline, numbers above `_covered`
        self._armed: float | None = None

    def admit(self, number: int, deadline: float, count: int) -> bool:
        """Admits `count` items of assignment `number`; none may start before this returned True. False: their lease is
        already over, nothing was admitted (L5)."""
        with self._lock:
            if number <= self._covered and self._renewed:
                deadline = self._renewed
            if deadline <= self._clock():
                return False
            self._inside += count
            if number > self._covered:
                self._later[number] = deadline
            elif self._known is None or deadline < self._known:
                self._known = deadline
            self._set()
            return True

    def renewed(self, number: int, deadline: float) -> None:
        """Sets the earliest deadline of everything sent up to assignment `number` (0: none of it is left)."""
        with self._lock:
            self._covered = max(self._covered, number)
            self._renewed = deadline
            self._known = deadline or None
            for covered in [known for known in self._later if known <= self._covered]:
                del self._later[covered]
            self._set()

    def left(self, count: int) -> None:
        """Takes out `count` items that ended; with the last one the timer is disarmed."""
        with self._lock:
            self._inside -= count
            if self._inside <= 0:
                self._inside = 0
                self._known = None
                self._later.clear()
                self._set()

    def again(self) -> None:
        """Arms the timer once more: a function may have taken it away."""
        with self._lock:
            if self._armed is not None:
                self._arm(self._armed)

    def _set(self) -> None:
        deadlines = [*self._later.values()]
        if self._known is not None:
            deadlines.append(self._known)
        if not self._inside or not deadlines:
            if self._armed is not None and not self._inside:
                self._arm(0.0)
                self._armed = None
                self._told(0.0)
            return
        deadline = min(deadlines)
        former = self._armed
        if deadline == former:
            return
        if former is None or deadline < former:
            self._told(deadline)
        self._arm(deadline)
        self._armed = deadline
        if former is not None and deadline > former:
            self._told(deadline)
