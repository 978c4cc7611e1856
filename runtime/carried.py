"""Carried runs: they began in a session that its scheduler no longer knows, as after its restart, and are not over.

They are being stopped, and nobody hears how they end; but until then they are there, and a limit on how many run at
once counts them (FL22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..model.workload import INDEX_BITS, INDEX_MASK, Flight, Kind
from .frames import SESSION_BITS


class CarriedRuns:
    """The kinds of items in this worker, by flight. Invariant: every key in the worker has its flight here; a flight
    that is over goes with the next `keep`."""

    def __init__(self) -> None:
        self._kinds: dict[int, Sequence[Kind]] = {}

    def assigned(self, session: int, flight: Flight) -> None:
        """Remembers the kinds of a flight that was assigned."""
        self._kinds[session << SESSION_BITS - INDEX_BITS | flight.number] = flight.kinds

    def keep(self, inside: Iterable[int]) -> None:
        """Forgets every flight but those of these keys."""
        alive = {key >> INDEX_BITS for key in inside}
        self._kinds = {flight: kinds for flight, kinds in self._kinds.items() if flight in alive}

    def kinds(self, keys: Iterable[int]) -> Counter[Kind]:
        """Number of these items, by kind."""
        found = Counter[Kind]()
        for key in keys:
            kinds = self._kinds.get(key >> INDEX_BITS)
            if kinds is not None:
                found[kinds[key & INDEX_MASK]] += 1
        return found
