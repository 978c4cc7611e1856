"""Offsets that a member may commit to its consumer group, so that the group's never go back.

A group takes an offset from any of its members, whoever has the partition. So a member tells only what was settled in
its present tenure of a partition: from when it opened the partition, with the row and the checkpoint that it has then,
until the group takes the partition away, for however short a time. Whatever an owner tells is durable in our checkpoint
before, and the next owner begins at that checkpoint or above; so within a tenure nothing lies below what any tenure
before told. What is not told at the end of a tenure the next one tells, since each begins by telling its checkpoint.
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
    """The offsets that the group is to hear. `tenures` has the partitions that are open here and the group's to us;
    `told` what the group took in them."""
    return {
        place: at
        for place, (at, tenure) in settled.items()
        if tenures.get(place) == tenure and at > told.get(place, -1)
    }
