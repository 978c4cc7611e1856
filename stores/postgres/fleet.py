"""The fleet that a schema is of, with all that rests in it: one row, which the first one writes."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from ..fleets import refuse_another


async def refuse_another_fleet(
    connection: AsyncConnection[tuple[Any, ...]], schema: str, store: str, fleet: str
) -> None:
    """Says that the schema is of this fleet; none: nothing is said. Raises ConfigError where it is another one's.
    `store`: what rests in it, for messages."""
    if fleet:
        cursor = await connection.execute(f"SELECT {schema}.control_belong(%s)".encode(), (fleet,))
        row = await cursor.fetchone()
        assert row is not None
        refuse_another(f"{store}, in the schema {schema!r},", str(row[0]), fleet, "another `schema` in stores.yaml")
