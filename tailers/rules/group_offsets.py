"""Offsets that a member may commit to its consumer group, so that the group's never go back.

A group takes an offset from any of its members, no matter which has the partition. So a member commits only what was
settled in its present tenure of a partition: from when it opened the partition, with the row and the checkpoint that it
has then, until the group takes the partition away, for however short a time. An offset that an owner commits is durable
in our checkpoint before, and the next owner begins at that checkpoint or above; so within a tenure nothing lies below
an offset committed in any tenure before. An offset left over at the end of a tenure is committed in the next one, since
each begins by committing its checkpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

P = TypeVar("P", bound=Hashable)


class Settled(NamedTuple):
    """Progress of a partition: all below `position` was settled, in the tenure of that number."""

    position: int
    tenure: int


def to_tell(settled: Mapping[P, Settled], tenures: Mapping[P, int], told: Mapping[P, int]) -> dict[P, int]:
    """The offsets that the group is to hear. `tenures` has the partitions that are open here and that the group gave to
    us; `told` has the offsets that the group took of them."""
    return {
        place: at
        for place, (at, tenure) in settled.items()
        if tenures.get(place) == tenure and at > told.get(place, -1)
    }
