"""A PostgreSQL server as stores use it: its address, its connections, and its errors in our words.

Every call is one statement in a transaction of its own: no session settings, no session locks, and prepared statements
only where no pooler is between us and the server, so that a pooler may give each call another connection. Only two
kinds of statements are tried again here: those that the server asks to repeat (a deadlock, a serialization failure),
and those that it did not run (an unknown prepared statement). Another error says that it is unknown whether a write was
kept, and the caller repeats it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg
from psycopg import AsyncConnection, errors
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ...foundation.config import Seconds
from ...model.errors import ConfigError, NotConnected, StoreFull, TailraceError
from ..refused import Refused, UnsaidValue
from .connection import CursorKeepingConnection, StandbyLacksIt, with_schema
from .pool import PostgresConnections

#: Times that a statement is sent again because the server ended it in favour of another one.
AGAIN = 5
#: A statement is prepared when it is executed the third time: parsing and planning it is a sixth of a lone one's cost.
PREPARE_AFTER = 2
#: Errors for which a prepared statement was not run: a pooler in between does not know its name or knows it already, or
#: the columns of its answer have changed with a migration.
_UNPREPARED = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement, errors.FeatureNotSupported)
_LOG = logging.getLogger("tailrace.stores")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")

#: Checks a new connection, within a deadline.
Prepare = Callable[[AsyncConnection[tuple[Any, ...]], asyncio.Timeout], Awaitable[None]]


class PostgresOptions(BaseModel):
    """The connection to a server.

    url              postgresql://user@host:5432/database, with several hosts and parameters (sslmode, …) as in libpq
    user, password   win over those in the URL
    db_schema        the schema of the tables; written `schema`
    connections      most connections that are open, besides the one that listens
    notify           nodes tell each other at once when they submitted something
    connect_timeout, timeout   seconds for a connection, and for an answer
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    url: SecretStr = SecretStr("postgresql://127.0.0.1:5432/postgres")
    user: str | None = None
    password: SecretStr | None = None
    db_schema: str = Field("tailrace", alias="schema")
    connections: int = Field(8, ge=1, le=100)
    notify: bool = True
    connect_timeout: Seconds = Field(5.0, ge=1, le=300)
    timeout: Seconds = Field(10.0, gt=0, le=300)

    @field_validator("url")
    @classmethod
    def _is_a_url(cls, url: SecretStr) -> SecretStr:
        parts = urlsplit(url.get_secret_value())
        if parts.scheme not in ("postgresql", "postgres"):  # the value may hold a password, so it is not repeated
            raise ValueError("expected a URL such as postgresql://USER@HOST:5432/DATABASE")
        return url

    @field_validator("db_schema")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("expected lower-case letters, digits and underscores, at most 63")
        return name

    @property
    def server(self) -> str:
        """The server, as messages name it: without user and password."""
        parts = urlsplit(self.url.get_secret_value())
        return f"PostgreSQL at {parts.netloc.rpartition('@')[2]}{parts.path}"

    async def connect(self) -> AsyncConnection[tuple[Any, ...]]:
        """A new connection. Raises TailraceError."""
        given: dict[str, Any] = {"connect_timeout": max(1, round(self.connect_timeout))}
        if self.user is not None:
            given["user"] = self.user
        if self.password is not None:
            given["password"] = self.password.get_secret_value()
        try:
            return await AsyncConnection.connect(
                self.url.get_secret_value(), autocommit=True, prepare_threshold=None, **given
            )
        except (psycopg.Error, OSError) as error:
            raise explained(error, self.server) from None


class PostgresServer:
    """A few connections to one server, dialled when needed and again after they broke. `prepare` is awaited with each
    new one and its deadline, which it may put off. It may refuse the connection with a ConfigError, which ends a start;
    later, while the process runs, calls raise NotConnected instead until the server can be trusted."""

    def __init__(self, options: PostgresOptions, prepare: Prepare) -> None:
        self.options = options
        self.name = options.server
        self._prepare = prepare
        self._names = True  # no server process or pooler has refused a prepared statement so far
        self._connections: PostgresConnections[CursorKeepingConnection] = PostgresConnections(
            self._connect, options.connections
        )
        self._closed = True
        self._trusted = False  # a connection was accepted before

    @property
    def idle(self) -> int:
        """Number of connections that no call has."""
        return self._connections.idle

    def open(self) -> None:
        """Answers calls from now on."""
        self._closed = False
        self._connections.open()

    async def close(self) -> None:
        """Closes the connections; those in use when they are free. Harmless when closed."""
        self._closed = True
        await self._connections.close()

    async def dial_anew(self) -> None:
        """Closes the idle connections, so that the next calls get new ones."""
        await self._connections.dial_anew()

    async def rows(
        self, statement: str, arguments: Sequence[Any] = (), about: str = "", schema: str = ""
    ) -> list[tuple[Any, ...]]:
        """Runs one statement, with the schema for its "S." where one is given; returns its rows. Raises Unavailable
        with advice, and psycopg's IntegrityError."""
        if self._closed:
            raise NotConnected(f"{self.name}: the store is closed")
        pool, text = self._connections, with_schema(statement, schema)
        for attempt in range(AGAIN + 1):
            connection = await pool.take(text)
            try:
                async with asyncio.timeout(self.options.timeout):
                    found = await connection.rows(text, arguments)
            except (errors.DeadlockDetected, errors.SerializationFailure) as error:
                pool.give_back(connection)
                if attempt == AGAIN:
                    raise explained(error, self.name, about) from None
            except psycopg.IntegrityError:
                pool.give_back(connection)
                raise
            except _UNPREPARED as error:
                pool.drop(connection)
                if not self._names or attempt == AGAIN:
                    raise explained(error, self.name, about) from None
                self._names = False
                await self.dial_anew()
            except (psycopg.Error, OSError, TimeoutError) as error:
                await self._let_go(connection, error)
                raise explained(error, self.name, about) from None
            except BaseException:  # cancelled: what the server does with it is unknown
                pool.drop(connection)
                raise
            else:
                pool.give_back(connection)
                return found
        raise AssertionError

    async def _let_go(self, connection: CursorKeepingConnection, error: Exception) -> None:
        """Keeps a connection on which a call failed, where it may still be used. A primary that was made read-only
        closes no connection, and only dialling anew leads to the server that the address means now."""
        demoted = isinstance(error, errors.ReadOnlySqlTransaction)
        if demoted or isinstance(error, TimeoutError) or connection.broken:
            self._connections.drop(connection)
        else:
            self._connections.give_back(connection)
        if demoted:
            await self.dial_anew()

    async def _connect(self) -> CursorKeepingConnection:
        connection = await self.options.connect()
        try:
            async with asyncio.timeout(self.options.timeout) as bound:
                await self._prepare(connection, bound)
                if self._names and await _is_direct(connection):
                    connection.prepare_threshold = PREPARE_AFTER
        except (psycopg.Error, OSError, TimeoutError) as error:
            await connection.close()
            raise explained(error, self.name) from None
        except ConfigError as error:
            await connection.close()
            if self._trusted:
                raise NotConnected(str(error)) from None
            raise
        except BaseException:
            await connection.close()
            raise
        self._trusted = True
        return CursorKeepingConnection(connection)

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _is_direct(connection: AsyncConnection[tuple[Any, ...]]) -> bool:
    """Whether the server process that answers is the one that took the connection: a pooler tells a process id of its
    own."""
    cursor = await connection.execute("SELECT pg_backend_pid()")
    row = await cursor.fetchone()
    return row is not None and row[0] == connection.info.backend_pid


async def refuse_unsafe(connection: AsyncConnection[tuple[Any, ...]], server: str, *, durable: bool) -> None:
    """Raises NotConnected for a server that takes no writes now, and ConfigError for one that cannot keep acknowledged
    writes although it should (`durable`)."""
    cursor = await connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'),"
        " current_setting('full_page_writes'), current_setting('synchronous_commit'),"
        " current_setting('server_version_num')::int"
    )
    row = await cursor.fetchone()
    assert row is not None
    standby, read_only, fsync, full_pages, synchronous, version = row
    if standby or read_only == "on":
        raise NotConnected(
            f"{server} is {'a standby' if standby else 'read-only'} and takes no writes: give the address of the "
            "primary (several hosts and target_session_attrs=read-write in the URL find it)"
        )
    if version < 140000:
        raise ConfigError(f"{server} is of version {version // 10000}: expected PostgreSQL 14 or newer")
    off = [
        name
        for name, value in (("fsync", fsync), ("full_page_writes", full_pages), ("synchronous_commit", synchronous))
        if value == "off"
    ]
    if durable and off:
        raise ConfigError(
            f"{server} has {', '.join(off)} off, so what it acknowledges may be lost: turn it on, or set "
            "`durability: relaxed` in stores.yaml"
        )


class NoTables(NotConnected):
    """A schema, a table, a column or a function is missing: an operator may be migrating or restoring it."""


#: SQLSTATEs (whole, or the class); the error to raise, and its text, with {server}, {what} and {said}. The first that
#: fits counts.
_CASES: tuple[tuple[tuple[str, ...], type[TailraceError], str], ...] = (
    (
        ("28",),
        NotConnected,
        "{server} refuses the user or the password: give a user and password that the server knows",
    ),
    (("3D000",), NotConnected, "{server}: there is no such database: create it, or name another one in the URL"),
    (("25006",), NotConnected, "{what}: it is read-only now and takes no writes, until it is the primary again"),
    (("53100",), StoreFull, "{what}: its disk is full, so it refuses writes: free some space there"),
    (("53200",), StoreFull, "{what}: it has no memory left for this ({said})"),
    (("53300",), NotConnected, "{server} has too many connections: raise max_connections, or lower `connections`"),
    (
        ("42501",),
        NotConnected,
        "{what}: this user may not do that ({said}): grant the right, or make the user the schema's owner",
    ),
    (
        ("3F000", "42P01", "42883", "42703"),
        NoTables,
        "{what}: its tables are not those of this version ({said}): run `tailrace store migrate`",
    ),
    (("22",), UnsaidValue, "{what}: {said}"),
    (("57P", "08"), NotConnected, "{server} cannot be reached now: {said}"),
    (("23", "54"), Refused, "{what}: {said}"),
)
#: Texts of libpq without a SQLSTATE when it cannot connect, and the SQLSTATE that they stand for.
_TOLD = (("password authentication failed", "28"), ("no password supplied", "28"), ("does not exist", "3D000"))


def explained(error: Exception, server: str, about: str = "") -> TailraceError:
    """The error to raise, with its cause and advice: NotConnected for all that may pass by waiting or with an
    operator's help."""
    what = f"{server}, {about}" if about else server
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, TimeoutError):
        return NotConnected(f"{what} does not answer; it is unknown whether a write was kept, so it is to be repeated")
    if isinstance(error, StandbyLacksIt):
        return NotConnected(f"{what}: {said}, so it is to be repeated")
    code = getattr(error, "sqlstate", None) or next((code for words, code in _TOLD if words in str(error)), "")
    for codes, instead, words in _CASES:
        if code and any(code.startswith(each) for each in codes):
            return instead(words.format(server=server, what=what, said=said))
    if isinstance(error, psycopg.OperationalError | OSError) and not code:
        return NotConnected(f"{server} cannot be reached: {said}")
    return NotConnected(f"{what}: {said}")


__all__ = ["NoTables", "PostgresOptions", "PostgresServer", "UnsaidValue", "explained", "refuse_unsafe"]
