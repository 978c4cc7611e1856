"""The places of callbacks: THE rule of which requests may be out at once. A receiver that is silent, and a tenant with
many callbacks, leave others theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...model.shared_room import room_left

#: Requests that may be out at once, and of these to one host.
MOST, OF_A_HOST = 16, 8
#: Requests in a row that a host did not answer, after which it is asked one at a time (a circuit breaker).
SILENT_AFTER = 3
#: Seconds until a silent host is asked again, at first and at most; each further silence doubles them.
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
#: Seconds until an item is looked at again that found no place.
LOOK_AGAIN = 1.0
#: Silent hosts that are remembered.
REMEMBERED = 1000


class PlacesLeft(NamedTuple):
    """The most callbacks of the next claim, and the tenants of which none is claimed."""

    total: int
    closed: frozenset[str]


def places_left(held: Mapping[str, int], most: int, *, tenants: bool) -> PlacesLeft:
    """The places of the next claim. `held`: callbacks that are out, by tenant. `tenants`: there are any; where there
    are none all places are for those without."""
    used = sum(held.values())
    if not tenants:
        return PlacesLeft(most - used, frozenset())
    rooms = {tenant: room_left(count, used, most) for tenant, count in held.items()}
    closed = frozenset(tenant for tenant, room in rooms.items() if not room)
    return PlacesLeft(min([room_left(0, used, most), *(room for room in rooms.values() if room)]), closed)


@dataclass(slots=True)
class _Silence:
    """The requests in a row that a host did not answer, and when it is asked again."""

    failures: int = 0
    again: float = 0.0


class HostPlaces:
    """The requests of one gateway by host (and tenant, in one name). Invariant: each host that is counted has a request
    out."""

    def __init__(self) -> None:
        self._out: Counter[str] = Counter()
        self._silent: dict[str, _Silence] = {}

    def take(self, host: str, now: float) -> float:
        """Takes a place for a request, and returns 0; seconds to wait when there is none."""
        silence = self._silent.get(host)
        if silence is not None and silence.failures >= SILENT_AFTER:
            if now < silence.again:
                return silence.again - now
            if self._out[host]:
                return LOOK_AGAIN
        if self._out[host] >= OF_A_HOST:
            return LOOK_AGAIN
        self._out[host] += 1
        return 0.0

    def leave(self, host: str, now: float, *, answered: bool) -> None:
        """Gives a place back. `answered`: the host did, whatever it said."""
        self._out[host] -= 1
        if not self._out[host]:
            del self._out[host]
        silence = self._silent.pop(host, _Silence())
        if answered:
            return
        silence.failures += 1
        further = max(0, silence.failures - SILENT_AFTER)
        silence.again = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(further, 10))
        self._silent[host] = silence
        if len(self._silent) > REMEMBERED:
            del self._silent[next(iter(self._silent))]
