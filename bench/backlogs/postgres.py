"""Twins of items that wait in a schema of the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...stores.postgres.server import PostgresOptions

#: Twins of each item that one transaction writes.
STEP = 25

_OLDEST = "SELECT min(id) FROM {schema}.tasks"
_STATEMENTS = (
    """
    INSERT INTO {schema}.tasks (id, lane, kind, size, flags, due, next_trigger)
        SELECT t.id - (s.n << 22), t.lane, t.kind, t.size, t.flags, t.due - s.n * 1000, t.next_trigger - s.n * 1000
        FROM generate_series(%(oldest)s::bigint, %(newest)s::bigint, -1) AS s (n)
        CROSS JOIN LATERAL (SELECT * FROM {schema}.tasks WHERE id >= %(first)s ORDER BY id OFFSET 0) AS t
    """,
    """
    INSERT INTO {schema}.entities (id, payload)
        SELECT e.id - (s.n << 22), e.payload
        FROM generate_series(%(oldest)s::bigint, %(newest)s::bigint, -1) AS s (n)
        CROSS JOIN LATERAL (SELECT id, payload FROM {schema}.entities WHERE id >= %(first)s ORDER BY id OFFSET 0) AS e
    """,
    """
    INSERT INTO {schema}.counts (state, items) SELECT s, (%(oldest)s - %(newest)s + 1) * count(*)
        FROM {schema}.tasks, unnest('{{0,100}}'::smallint[]) AS s WHERE id >= %(first)s GROUP BY s
    """,
)


async def add_twins(options: dict[str, Any], times: int, done: Callable[[float], None]) -> None:
    """Adds `times` twins of each item; the oldest first, as they would have come."""
    server = PostgresOptions.model_validate({name: each for name, each in options.items() if name != "engine"})
    connection = await server.connect()
    try:
        await connection.execute("SET synchronous_commit = off")  # a schema that is lost is filled again
        found = await connection.execute(_OLDEST.format(schema=server.db_schema).encode())
        [first] = await found.fetchone() or [0]
        for oldest in range(times, 0, -STEP):
            step = {"oldest": oldest, "newest": max(1, oldest - STEP + 1), "first": first}
            async with connection.transaction():
                for statement in _STATEMENTS:
                    await connection.execute(statement.format(schema=server.db_schema).encode(), step)
            done(1 - oldest / times)
    finally:
        await connection.close()
