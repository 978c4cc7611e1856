"""A queue that programs enqueue to, and the function that they enqueue for."""

from __future__ import annotations

from typing import Any

import tailrace
from tailrace.model.demand import Cell, Demand

MAIL = "send_confirmation"
ANY = Demand({Cell(MAIL, priority): 1000 for priority in range(4)}, frozenset(), 1000)


@tailrace.function(name=MAIL, priority="interactive")
async def send_confirmation(to: str) -> None: ...


class Place:
    """The place of a queue to which programs enqueue, with a claim and a settlement for tests."""

    def __init__(self, queue: Any, address: str, schema: str = "") -> None:
        self.queue, self.address, self.schema = queue, address, schema
        self.options = {"schema": schema} if schema else {}

    async def arrived(self) -> list[dict[str, Any]]:
        """Items that are in the queue now, once it has looked."""
        await self.queue.sweep()
        leased = await self.queue.lease(ANY, 30, 0)
        if leased is None:
            return []
        return [
            {
                "payload": payload,
                "kind": kind,
                "id": id,
                "extra": leased.extras.get(index),
                "fence": leased.fence,
            }
            for index, (payload, kind, id) in enumerate(zip(leased.payloads, leased.kinds, leased.ids, strict=True))
        ]

    async def done(self, items: list[dict[str, Any]]) -> None:
        await self.queue.settle(items[0]["fence"], [item["id"] for item in items], [])
