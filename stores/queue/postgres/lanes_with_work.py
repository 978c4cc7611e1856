"""Lanes in which items wait, as far as this process knows. A claim visits these, not every lane that was ever used.
Pure.

A lane is added when this process stores an item in it, or finds one there; it is removed when a look finds none. A look
also finds other lanes in which other processes stored items, by steps along the index between the known ones.
"""

from __future__ import annotations

from collections.abc import Iterable


class LanesWithWork:
    """Numbers of lanes. Invariant: a lane in which this process stored an item is included until a look that began
    later found none."""

    def __init__(self) -> None:
        self._lanes: dict[int, int] = {}  # lane → value of `_stores` when an item was last put there
        self._stores = 0

    @property
    def lanes(self) -> list[int]:
        """All of these lanes, in rising order."""
        return sorted(self._lanes)

    def put(self, lanes: Iterable[int]) -> None:
        """Notes that items wait in these lanes."""
        self._stores += 1
        self._lanes.update(dict.fromkeys(lanes, self._stores))

    def looking(self) -> int:
        """Begins a look, and returns its number: lanes that it finds empty are removed unless something is put there
        later."""
        return self._stores

    def empty(self, lane: int, look: int) -> None:
        """Notes that a look found no item in the lane."""
        if self._lanes.get(lane, look + 1) <= look:
            del self._lanes[lane]

    def found(self, lanes: Iterable[int], look: int) -> None:
        """Notes that a look found items in these lanes, and in no others."""
        later = {lane: put for lane, put in self._lanes.items() if put > look}
        self._lanes = dict.fromkeys(lanes, look) | later
