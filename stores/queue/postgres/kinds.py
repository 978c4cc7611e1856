"""Kinds and lanes of a queue on PostgreSQL: any node may add some, and each reads what the others added."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ....model.workload import Kind
from ...postgres.arrays import numbers, texts
from ...postgres.run_statement import RunStatement
from ..kinds import Kinds
from . import statements as call


class PostgresKinds(Kinds):
    """Numbers rise in the order in which they can be seen, so that none is missed between two looks."""

    def __init__(self, rows: RunStatement) -> None:
        super().__init__()
        self._rows = rows
        self._looking = asyncio.Lock()

    async def look(self) -> None:
        """Reads what was added since."""
        async with self._looking:
            for kind, lane, tenant, *address in await self._rows(call.LEARN, (next(reversed(self.kinds), 0),), "kinds"):
                if lane not in self.lanes:
                    function, priority, collection = address
                    self.learn_lane(lane, (function, priority, collection))
                self.learn(kind, lane, tenant)

    async def add(self, kinds: Iterable[Kind]) -> None:
        """Sees to it that these have numbers."""
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
