"""Kinds and lanes of a queue on PostgreSQL: any node may add some, and every node reads the ones that others added."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ....model.workload import Kind
from ...postgres.arrays import numbers, texts
from ...postgres.run_statement import RunStatement
from ..kinds import Kinds
from . import statements as call


class PostgresKinds(Kinds):
    """Kinds and lanes by number. Numbers rise in the order in which they become visible, so no look misses one."""

    def __init__(self, rows: RunStatement) -> None:
        super().__init__()
        self._rows = rows
        self._looking = asyncio.Lock()

    async def look(self) -> None:
        """Reads the kinds that were added since the last look."""
        async with self._looking:
            for kind, lane, tenant, *address in await self._rows(call.LEARN, (next(reversed(self.kinds), 0),), "kinds"):
                if lane not in self.lanes:
                    function, priority, collection = address
                    self.learn_lane(lane, (function, priority, collection))
                self.learn(kind, lane, tenant)

    async def add(self, kinds: Iterable[Kind]) -> None:
        """Gives numbers to those of these kinds that have none."""
        new = sorted(kind for kind in set(kinds) if kind not in self.numbers)
        if new:
            columns = (
                texts([kind.function for kind in new]),
                numbers(int(kind.priority) for kind in new),
                texts([kind.collection for kind in new]),
                texts([kind.tenant for kind in new]),
            )
            await self._rows(call.KINDS, columns, "new kinds")
            await self.look()
