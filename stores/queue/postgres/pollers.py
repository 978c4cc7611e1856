"""The pollers of a queue in PostgreSQL."""

from __future__ import annotations

from ...postgres.run_statement import RunStatement
from ..poller import SEEN


class PostgresPollers:
    """The Pollers of a schema. `rows` runs a statement, with S. for the schema."""

    def __init__(self, rows: RunStatement) -> None:
        self._rows = rows

    async def count(self, me: str, *, here: bool) -> int:
        arguments = (None, me, here, int(SEEN * 1e6))
        statement = "SELECT S.queue_pollers(%s::bigint, %s::text, %s::boolean, %s::bigint)"
        [(count,)] = await self._rows(statement, arguments, "a count of pollers")
        return int(count)

    async def leave(self, me: str) -> None:
        await self._rows("DELETE FROM S.pollers WHERE poller = %s", (me,), "the end of a poller")
