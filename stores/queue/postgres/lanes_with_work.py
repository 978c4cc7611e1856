"""The lanes in which something waits, as far as this process knows: a claim visits these, not all that ever were used.
Pure.

A lane comes here when this process stores something in it, or finds something there; it goes when a look finds nothing.
What other processes store in other lanes is found by a look too, by steps over the index between these.
"""

from __future__ import annotations

from collections.abc import Iterable


class LanesWithWork:
    """Numbers of lanes. Invariant: a lane in which this process stored something is here until a look that began later
    found nothing."""

    def __init__(self) -> None:
        self._lanes: dict[int, int] = {}  # lane → when something was last put there, in stores so far
        self._stores = 0

    @property
    def lanes(self) -> list[int]:
        """All of them, in rising order."""
        return sorted(self._lanes)

    def put(self, lanes: Iterable[int]) -> None:
        """Something waits in these."""
        self._stores += 1
        self._lanes.update(dict.fromkeys(lanes, self._stores))

    def looking(self) -> int:
        """A look begins: what it says of emptiness is true of what was put until now."""
        return self._stores

    def empty(self, lane: int, look: int) -> None:
        """Notes that a look found nothing in the lane."""
        if self._lanes.get(lane, look + 1) <= look:
            del self._lanes[lane]

    def found(self, lanes: Iterable[int], look: int) -> None:
        """Notes that a look found something in these lanes, and in no others."""
        later = {lane: put for lane, put in self._lanes.items() if put > look}
        self._lanes = dict.fromkeys(lanes, look) | later
