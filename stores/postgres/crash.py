"""Crashes of a server that does not wait for its commits: its last ones may be lost, claims and owners of streams among
them, while what they gave out still runs. A mark in an unlogged table, which PostgreSQL empties after a crash and keeps
through a shutdown, tells one from the other."""

from __future__ import annotations

import logging
from typing import Any

from psycopg import AsyncConnection

_LOG = logging.getLogger("tailrace.stores")


async def look_for_a_crash(connection: AsyncConnection[tuple[Any, ...]], schema: str, server: str) -> None:
    """Has the schema taken for one that was put back, if its server crashed since somebody looked last: claims wait for
    the lease of a source then, and the epochs of streams rise. For servers with relaxed durability, with each new
    connection, since a crash ends all of them."""
    cursor = await connection.execute(f"SELECT {schema}.look_for_a_crash()".encode())
    row = await cursor.fetchone()
    if row is not None and row[0]:
        _LOG.warning("%s: the server crashed, and may have lost its last commits (durability: relaxed)", server)
