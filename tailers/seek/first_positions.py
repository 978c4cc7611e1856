"""First positions in a stream: of everything that its source still has, and of the items from a time on.

Found by halving, with a read of a few items by position each time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...sdk.source import Dated, Ranged, Rereader, StreamBatch, StreamSource

#: Positions looked at behind one that holds nothing, when a time is searched for.
NEAR = 64


async def first_kept(source: Rereader | StreamSource, partition: str, low: int, high: int) -> int:
    """The first position from `low` on that retention has not taken; `high` if it took all before."""
    if isinstance(source, Ranged):
        batch = await source.between(partition, low, high - 1, 1)
        return batch.positions[0] if batch.positions else high

    async def is_gone(position: int) -> bool:
        batch: StreamBatch = await source.reread(partition, [position])
        return bool(batch.lost)

    return await _first(low, high, is_gone)


async def first_from(source: Rereader | StreamSource, partition: str, low: int, high: int, time: float) -> int:
    """The first position from `low` to `high` that the source has, and whose item is not from before `time`. The source
    is `timed`."""
    if isinstance(source, Dated):
        return min(high, max(low, await source.position_at(partition, time)))

    async def is_before(position: int) -> bool:
        batch = await source.reread(partition, list(range(position, min(high, position + NEAR))))
        return batch.times[0] < time if batch.positions else bool(batch.lost)

    return await _first(low, high, is_before)


async def _first(low: int, high: int, is_below: Callable[[int], Awaitable[bool]]) -> int:
    while low < high:
        middle = (low + high) // 2
        if await is_below(middle):
            low = middle + 1
        else:
            high = middle
    return low
