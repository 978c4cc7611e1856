"""Watch over time-outs: the moments at which an executor's control thread looks, and the runs that did not end within a
grace after their time-out. `hard`: key → when the run's process must end, and the run's time-out.

Pure: times are CLOCK_MONOTONIC seconds of this host. A process that stood still as a whole is not blamed for it: the
thread that looks could not run either. A run whose time was over meanwhile has a grace from then on, since it could not
hear before that it should end; but only once: a function that holds the interpreter lock looks the same from here.
"""

from __future__ import annotations

from collections.abc import Mapping

#: A look comes this much later than it should, in seconds beyond two pauses: then the process stood still.
STOOD_STILL = 1.0
#: Seconds between two looks, at least: a run that is about to be overdue is looked at soon.
LEAST = 0.01

Hard = Mapping[int, tuple[float, float]]


class Overdue:
    """The state of the watch. `patience` is how many seconds pass between two looks at most; `grace` the seconds that a
    run gets after its time-out."""

    def __init__(self, patience: float, grace: float, now: float) -> None:
        self._patience = patience
        self._grace = grace
        self._looked = now
        self._excused: dict[int, float] = {}  # run → until when

    def pause(self, hard: Hard, now: float) -> float:
        """Seconds until the next look."""
        first = min((self._end(key, when) for key, (when, _) in hard.items()), default=None)
        return self._patience if first is None else max(LEAST, min(self._patience, first - now))

    def looks(self, hard: Hard, now: float) -> bool:
        """Begins a look. False: the process stood still before it, and nothing in it is to be blamed."""
        well = now - self._looked <= 2 * self._patience + STOOD_STILL
        self._looked = now
        if self._excused:
            self._excused = {key: until for key, until in self._excused.items() if key in hard}
        if not well:
            until = now + self._grace
            for key, (when, _) in hard.items():
                if when < until:
                    self._excused.setdefault(key, until)
        return well

    def overdue(self, hard: Hard, now: float) -> tuple[int, float] | None:
        """A run that must have ended by now: its key and its time-out."""
        for key, (when, timeout) in hard.items():
            if now > self._end(key, when):
                return key, timeout
        return None

    def _end(self, key: int, when: float) -> float:
        return max(when, self._excused.get(key, when))
