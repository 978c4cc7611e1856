"""A primary that was made read-only keeps its connections open: a client that is refused there dials anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.postgres.server import PostgresOptions, PostgresServer


class Line:
    """A connection to a server that takes writes, or not any more."""

    closed = broken = False

    def __init__(self) -> None:
        self.read_only = False

    async def close(self) -> None:
        self.closed = True

    async def rows(self, statement: str, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self.read_only:
            raise psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")
        return [(1,)]


async def test_who_is_refused_by_a_former_primary_dials_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a server in use
    made: list[Line] = []

    async def connect(_: PostgresServer) -> Line:
        made.append(Line())
        return made[-1]

    async def prepare(*_: Any) -> None:
        """Skips the look at a new connection."""

    monkeypatch.setattr(PostgresServer, "_connect", connect)
    async with PostgresServer(PostgresOptions(), prepare) as server:
        assert await server.rows("SELECT 1") == [(1,)]
        # When it takes no writes any more, and closes no connection
        made[0].read_only = True
        with pytest.raises(NotConnected, match="it is read-only now"):
            await server.rows("SELECT 1")
        # Then the next call has a new one, that leads to where the address does now
        assert await server.rows("SELECT 1") == [(1,)]
        assert ([line.closed for line in made], server.idle) == ([True, False], 1)
