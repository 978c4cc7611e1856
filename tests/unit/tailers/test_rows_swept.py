"""Sweeping a tailer's rows, while its stream gets partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from tailrace.tailers.ledger.rows import Rows


class Growing:
    """A ledger and an epoch: with each of their answers another partition has come into being."""

    number = 1

    def __init__(self) -> None:
        self.partitions: dict[str, Any] = {}
        self.told: list[tuple[str, int]] = []
        self.swept: list[int] = []

    def grow(self) -> None:
        name = f"p{len(self.partitions)}"
        self.partitions[name] = SimpleNamespace(name=name, checkpoint=5, rowed={3}, swept=self.swept.append)

    async def guarded(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> None:
        self.told.append((partition, position))
        self.grow()


async def test_a_partition_that_comes_while_others_are_swept_stops_nothing() -> None:
    # Given a tailer of two partitions whose checkpoints have passed rows
    growing: Any = Growing()
    growing.grow(), growing.grow()
    rows = Rows(growing, growing, "orders", growing.partitions)
    # When others come into being meanwhile
    await rows.sweep()
    # Then the two were swept, and the others are in the next round
    assert (growing.told, growing.swept) == ([("p0", 5), ("p1", 5)], [5, 5])
    await rows.sweep()
    assert {name for name, _ in growing.told} >= {"p2", "p3"}
