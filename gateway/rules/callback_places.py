"""Places for callbacks that are being sent: how many the next claim may ask for, and whose wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.shared_room import room_left


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
