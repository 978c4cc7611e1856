"""Ranges of dropped positions → fewer ranges: ranges that touch are merged, and far behind the frontier also ranges
with small gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model.drop import Drop
from ..thinning import thinned


def join(known: Drop, new: Drop) -> Drop:
    """Merges two ranges of one cause and version. Positions that both have are counted once: `new` is exact there, and
    positions that are noted again were noted before."""
    both = min(known.last, new.last) - max(known.first, new.first) + 1
    return new._replace(
        first=min(known.first, new.first),
        last=max(known.last, new.last),
        items=known.items + new.items - max(0, both),
        at=max(known.at, new.at),
    )


def touch(one: Drop, other: Drop) -> bool:
    """Whether no position lies between two ranges, and they have the same cause and version."""
    same = (one.cause, one.version) == (other.cause, other.version)
    return same and one.first <= other.last + 1 and other.first <= one.last + 1


def joined(drops: Iterable[Drop]) -> list[Drop]:
    """Merges exact ranges that touch; the rest rise within a cause and version."""
    found: list[Drop] = []
    for drop in sorted(drops, key=lambda drop: (drop.cause, drop.version, drop.first)):
        if found and touch(found[-1], drop):
            found[-1] = join(found[-1], drop)
        else:
            found.append(drop)
    return found


def fewer(drops: Sequence[Drop], most: int) -> list[Drop]:
    """Merges neighbours of one cause and version across the smallest gaps until there are at most `most` ranges, or one
    for each cause and version when these are more. Their counts add up to the same as before. `drops` neither overlap
    nor touch."""
    return thinned(sorted(drops, key=lambda drop: (drop.cause, drop.version, drop.first)), most, _gap, join)


def _gap(former: Drop, later: Drop) -> int | None:
    same = (former.cause, former.version) == (later.cause, later.version)
    return later.first - former.last if same else None
