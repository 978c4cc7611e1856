"""Sizes of a queue in PostgreSQL: bytes of its tables and of their indexes, once dead rows were vacuumed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from ..stores.postgres.server import PostgresOptions

_SIZES = """
SELECT coalesce(sum(pg_table_size(c.oid)), 0)::float8, coalesce(sum(pg_indexes_size(c.oid)), 0)::float8
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'tailrace' AND c.relkind = 'r'
"""


@contextlib.asynccontextmanager
async def sizes(url: str) -> AsyncIterator[Callable[[], Awaitable[dict[str, float]]]]:
    """Yields the function that measures them. It vacuums first: the server does so by itself only once a minute."""
    connection = await PostgresOptions.model_validate({"url": url}).connect()

    async def look() -> dict[str, float]:
        await connection.execute("VACUUM")
        tables, indexes = await (await connection.execute(_SIZES)).fetchone() or (0.0, 0.0)
        return {"tables": tables, "indexes": indexes}

    try:
        yield look
    finally:
        await connection.close()
