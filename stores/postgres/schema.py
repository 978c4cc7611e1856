"""One schema of a PostgreSQL server, as the stores in it use it: a statement has S. for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from ...model.errors import InvalidRequest
from .server import PostgresServer


class PostgresSchema:
    """One schema of a server. `relaxed`: a commit is not waited for. Errors are those of PostgresServer, and
    InvalidRequest for what the schema refuses."""

    def __init__(self, server: PostgresServer, *, relaxed: bool) -> None:
        self._server = server
        self._name = server.options.db_schema
        self._relaxed = relaxed

    async def write(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """One call of a function of the schema, of the form SELECT … FROM S.function(…); its rows."""
        if self._relaxed:
            statement = statement.replace(" FROM S.", " FROM set_config('synchronous_commit', 'off', true), S.", 1)
        return await self.read(statement, arguments, about)

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """One statement; its rows."""
        try:
            return await self._server.rows(statement, arguments, about, self._name)
        except psycopg.IntegrityError as error:
            said = str(error).strip().splitlines()[0]
            raise InvalidRequest(f"{self._server.name}, {about}: the schema refuses it: {said}") from None
