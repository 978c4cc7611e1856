"""Outcomes that were said and perhaps not heard: those of owned items, until their tailer acknowledged the frame.

When their row goes to another owner before that, they are the new owner's (L12)."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ..model.workload import Outcomes
from .rules.leases import FlightLease


class Said(NamedTuple):
    """A frame that was sent: its number on the link, its outcomes, and the owned flights of which nothing was left."""

    number: int
    outcomes: Outcomes
    flights: dict[int, FlightLease]


class Unheard:
    """The unheard outcomes of one tailer session. Invariant: frames stand in the order of their numbers. There are no
    more than the link keeps."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: deque[Said] = deque()

    def say(self, number: int, outcomes: Outcomes, flights: dict[int, FlightLease]) -> None:
        """Keeps what the frame with this number says."""
        self._said.append(Said(number, outcomes, flights))

    def heard(self, number: int) -> None:
        """Forgets what was acknowledged: all frames up to this number."""
        said = self._said
        while said and said[0].number <= number:
            said.popleft()

    def take_back(self) -> list[Said]:
        """Empties itself: all of it is to be said anew. What the tailer hears a second time it ignores."""
        taken = list(self._said)
        self._said.clear()
        return taken
