"""The fleet of a schema, with all stores in it: one row, which the first fleet writes."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from ..fleets import refuse_another


async def refuse_another_fleet(
    connection: AsyncConnection[tuple[Any, ...]], schema: str, store: str, fleet: str
) -> None:
    """Notes in the schema that it belongs to this fleet; nothing for a process without a fleet. Raises ConfigError
    where it belongs to another one. `store`: the store's name in messages."""
    if fleet:
        cursor = await connection.execute(f"SELECT {schema}.control_belong(%s)".encode(), (fleet,))
        row = await cursor.fetchone()
        assert row is not None
        refuse_another(f"{store}, in the schema {schema!r},", str(row[0]), fleet, "another `schema` in stores.yaml")
