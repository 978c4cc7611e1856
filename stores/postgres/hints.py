"""Hints by LISTEN and NOTIFY, each in a transaction of its own, since NOTIFY holds a lock of the whole database when it
commits. A pooler in transaction mode loses hints silently."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import psycopg

from ..hints import Hints
from .run_statement import RunStatement
from .server import PostgresOptions


class PostgresHints(Hints):
    """Hints by a channel of one schema. `about` tells apart the hints of different stores that use the schema."""

    def __init__(self, options: PostgresOptions, rows: RunStatement, wake: Callable[[], None], about: str) -> None:
        super().__init__("postgres", wake, psycopg.Error, on=options.notify)
        self._options = options
        self._rows = rows
        self._about = f"{about} "
        self._me = self._about + secrets.token_hex(8)

    async def _send(self) -> None:
        await self._rows("SELECT pg_notify(%s, %s)", (self._options.db_schema, self._me), "a hint")

    async def _hear(self) -> None:
        async with await self._options.connect() as connection:
            await connection.execute(f'LISTEN "{self._options.db_schema}"'.encode())
            self.listening.set()
            self._wake()
            async for hint in connection.notifies():
                if hint.payload.startswith(self._about) and hint.payload != self._me:
                    self._wake()
