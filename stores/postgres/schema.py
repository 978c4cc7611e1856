"""One schema of a PostgreSQL server, as its stores use it: their statements have "S." for its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from ...model.errors import InvalidRequest
from .commits import confirmed, relaxed
from .server import PostgresServer


class PostgresSchema:
    """One schema of a server. `relaxed`: commits are not waited for. Errors are those of PostgresServer, and
    InvalidRequest for a write that the schema refuses."""

    def __init__(self, server: PostgresServer, *, relaxed: bool) -> None:
        self._server = server
        self._name = server.options.db_schema
        self._relaxed = relaxed

    async def write(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """Calls one function of the schema, in the form SELECT … FROM S.function(…); returns its rows."""
        return await self.read((relaxed if self._relaxed else confirmed)(statement), arguments, about)

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """Runs one statement; returns its rows."""
        try:
            return await self._server.rows(statement, arguments, about, self._name)
        except psycopg.IntegrityError as error:
            said = str(error).strip().splitlines()[0]
            raise InvalidRequest(f"{self._server.name}, {about}: the schema refuses it: {said}") from None
