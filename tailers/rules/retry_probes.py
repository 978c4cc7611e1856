"""Retries as probes of a clogged function (an open circuit breaker): every other probe of a queue is an item that
failed before and is due again, if there is one.

A queue hands out by due time, so all that waited before the outage goes before its retries; but a function may fail at
an item's first attempt and be well at the next one. Not every probe: items that fail again and again would keep those
from being tried that are well.
"""

from __future__ import annotations

from collections.abc import Collection

#: Retries remembered of each function, and functions; the ones that came first go first.
RETRIES, FUNCTIONS = 64, 256


class RetryProbes:
    """Items of a queue that failed and came back, by function, with the time at which each is due (monotonic).

    Invariant: `_front` has the due time (wall clock) of the last item that a clogged function handed out, and only of
    clogged functions; `_waited` those whose last probe was no retry, so that the next one may be.
    """

    def __init__(self) -> None:
        self._due: dict[str, dict[str, float]] = {}
        self._front: dict[str, float] = {}
        self._waited: set[str] = set()

    def failed(self, function: str, id: str, due: float) -> None:
        """Notes an item that failed, spent an attempt, and is due again then."""
        retries = self._due.pop(function, {})
        retries.pop(id, None)
        retries[id] = due
        self._due[function] = retries
        if len(retries) > RETRIES:
            del retries[next(iter(retries))]
        if len(self._due) > FUNCTIONS:
            del self._due[next(iter(self._due))]

    def probed(self, function: str, due: float) -> None:
        """Notes an item of a clogged function that was claimed, and when it had been due (wall clock)."""
        self._front[function] = due
        self._waited.add(function)

    def next(self, functions: Collection[str], now: float) -> list[tuple[str, float]]:
        """Takes a due retry of each of these clogged functions whose turn it is: its id, and the time before which it
        has to be due to go first. Forgets what is known of functions that are not clogged any more."""
        for function in self._front.keys() - set(functions):
            del self._front[function]
            self._waited.discard(function)
        found: list[tuple[str, float]] = []
        for function in self._waited & self._due.keys():
            retries = self._due[function]
            id = min(retries, key=retries.__getitem__, default="")
            if id and retries[id] <= now:
                del retries[id]
                self._waited.discard(function)
                found.append((id, self._front[function]))
        return found
