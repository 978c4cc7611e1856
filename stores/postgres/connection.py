"""A connection to a PostgreSQL server that keeps the cursor of the statement which it ran last.

psycopg keeps with a cursor how the arguments and columns of its statement are written and read, as long as it gets the
same statement object. Looking that up, and describing columns that nobody asks for, was 7 % of the CPU time that a lone
item of a queue takes on its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, OperationalError
from psycopg.errors import Diagnostic

#: Rows of an answer up to which its cursor is kept, since a cursor keeps its last answer.
KEPT_ROWS = 16
#: Statements that are remembered with their schema.
REMEMBERED = 256
#: Function of the server that waits for standbys and warns when it was cut off.
WAITS_FOR_STANDBY = "SyncRepWaitForLSN"

Row = tuple[Any, ...]


@lru_cache(REMEMBERED)
def with_schema(statement: str, schema: str = "") -> str:
    """A statement as it is sent to the server, with the name of the schema for each "S.". It is the same object each
    time, by which a cursor recognises it."""
    return statement.replace("S.", f"{schema}.") if schema else statement


class StandbyLacksIt(OperationalError):
    """A server ended its wait for a synchronous standby: a commit is in the primary alone, although it confirmed it."""


class CursorKeepingConnection:
    """A connection, and the cursor of the statement that it ran last. Invariant: `_cursor` ran `_statement` last,
    without an error, and its answer was a short one."""

    __slots__ = ("_cursor", "_lacking", "_statement", "connection")

    def __init__(self, connection: AsyncConnection[Row]) -> None:
        self.connection = connection
        connection.add_notice_handler(self._noticed)
        self._lacking = False
        self._cursor: AsyncCursor[Row] | None = None
        self._statement = ""

    @property
    def closed(self) -> bool:
        """Whether the connection cannot be used any more."""
        return self.connection.closed

    @property
    def broken(self) -> bool:
        """Whether the connection was closed by something else than `close`."""
        return self.connection.broken

    async def close(self) -> None:
        """Closes the connection."""
        self._cursor = None
        await self.connection.close()

    async def rows(self, statement: str, arguments: Sequence[Any]) -> list[Row]:
        """Runs a statement; returns its rows. Raises psycopg's errors."""
        cursor, self._cursor, self._lacking = self._cursor, None, False
        if cursor is None or statement is not self._statement:
            cursor = self.connection.cursor()
        await cursor.execute(statement, arguments or None, binary=True)
        found = await cursor.fetchall() if cursor.rownumber is not None else []
        if len(found) <= KEPT_ROWS:
            self._cursor, self._statement = cursor, statement
        if self._lacking:
            raise StandbyLacksIt(
                "its wait for the synchronous standby was cut off, which need not have what was written"
            )
        return found

    def _noticed(self, notice: Diagnostic) -> None:
        """Notes that a wait for a standby was cut off (by a time-out or an operator), of which there is only a warning:
        its text is translated, the name of its place in the server is not."""
        self._lacking |= notice.source_function == WAITS_FOR_STANDBY
