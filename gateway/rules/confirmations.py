"""Confirmations of quotas: the version that each watching scheduler has in force.

A scheduler whose watch ended may go on with its old quotas, so it is remembered for a while: long enough that a broken
connection is not taken for a confirmation, and not for ever, since it may have been stopped for good.
"""

from __future__ import annotations

from dataclasses import replace

from ...model.quotas_in_force import InForce

#: Seconds for which a scheduler whose watch ended is remembered, and most of such names.
REMEMBERED = 600.0
MOST = 1000


class Confirmations:
    """Schedulers by name. Invariant: each has a watch that is open, or its `ended` is later than REMEMBERED ago when
    somebody looked last; no more than MOST without an open watch. Times are wall clock seconds."""

    def __init__(self) -> None:
        self._known: dict[str, InForce] = {}
        self._open: dict[str, int] = {}

    def watches(self, name: str) -> None:
        """Notes that a scheduler begins a watch; it will confirm its version anew."""
        self._open[name] = self._open.get(name, 0) + 1
        self._known[name] = replace(self._known.get(name, InForce(name)), ended=0.0)

    def ended(self, name: str, now: float) -> None:
        """Notes that a watch of a scheduler ended."""
        left = self._open.get(name, 0) - 1
        if left > 0:
            self._open[name] = left
            return
        self._open.pop(name, None)
        if (known := self._known.pop(name, None)) is not None:
            self._known[name] = replace(known, ended=now)  # behind those that ended before
        self._forget(now)

    def confirmed(self, name: str, version: int, now: float) -> bool:
        """Notes that a scheduler has this version in force; returns whether a scheduler of that name watches."""
        if name not in self._open:
            return False
        self._known[name] = InForce(name, version, now)
        return True

    def all(self, now: float) -> list[InForce]:
        """All known schedulers with their versions, by name."""
        self._forget(now)
        return [self._known[name] for name in sorted(self._known)]

    def _forget(self, now: float) -> None:
        over = [name for name in self._known if name not in self._open]
        excess = len(over) - MOST
        for place, name in enumerate(over):
            if place < excess or now - self._known[name].ended > REMEMBERED or now < self._known[name].ended:
                del self._known[name]
