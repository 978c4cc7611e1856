"""Positions ↔ places in objects: each item cut from an object gets the next position, and a position is found again.

Positions are dense over all objects of a source, in the order in which they were read: frontier, checkpoint, ledger and
audit count in them and know nothing of objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ...model.segment import Segment


class Cut(NamedTuple):
    """A part of one object: `items` items in `length` bytes of content from `offset` on; see `Segment`."""

    items: int
    ordinal: int
    version: str
    offset: int
    length: int
    refused: str = ""
    absent: bool = False
    end: bool = False


class NextPlace(NamedTuple):
    """The place to read on from: the object at `ordinal`; within it from `offset` on, in the content of `version`."""

    position: int = 0
    ordinal: int = 0
    version: str = ""
    offset: int = 0


def placed(position: int, cuts: Sequence[Cut]) -> list[Segment]:
    """The cuts with their positions, from `position` on."""
    segments = []
    for cut in cuts:
        segments.append(Segment(position, *cut))
        position += cut.items
    return segments


def following(last: Segment | None) -> NextPlace:
    """The place to read on from, after the last segment there is."""
    if last is None:
        return NextPlace()
    if last.end:
        return NextPlace(last.after, last.ordinal + 1)
    return NextPlace(last.after, last.ordinal, last.version, last.offset + last.length)


def within(segment: Segment, positions: Sequence[int]) -> list[int]:
    """The indexes in a segment of the positions (rising) that it holds."""
    start, end = bisect_left(positions, segment.first), bisect_left(positions, segment.after)
    return [position - segment.first for position in positions[start:end]]
