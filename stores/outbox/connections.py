"""Connections of applications: recognises the library of a connection, and runs a statement in its open transaction.

No library is imported here: the caller has loaded it. A connection is recognised by the module of its class or of a
base class. A connection on which no transaction can be open is refused: its statements would be committed at once,
apart from the caller's own data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...model.errors import InvalidRequest

POSTGRES, SQLITE = "postgres", "sqlite"
#: Drivers below SQLAlchemy, and their databases. Statements have %s for a value on PostgreSQL, and ? on SQLite.
_DRIVERS = {
    "psycopg": POSTGRES,
    "psycopg_async": POSTGRES,
    "psycopg2": POSTGRES,
    "pysqlite": SQLITE,
    "aiosqlite": SQLITE,
}
EXPECTED = (
    "a psycopg 3, sqlite3 or aiosqlite connection, a Session or Connection of SQLAlchemy 2 (also the async ones) over "
    "psycopg or SQLite, or Django's connection to PostgreSQL or SQLite"
)

Values = Sequence[Any]


class StatementRunner(NamedTuple):
    """A way to run statements on an application's connection. `run` runs a statement, with `?` for each value, in the
    open transaction, and returns its first row; with `awaits` it returns an awaitable. `database` is POSTGRES or
    SQLITE."""

    database: str
    awaits: bool
    run: Callable[[str, Values], Any]


def runner_of(connection: Any) -> StatementRunner:
    """Returns the way to run statements on a connection. Raises InvalidRequest for a connection of an unknown kind."""
    roots = {each.__module__.partition(".")[0] for each in type(connection).__mro__}
    awaits = inspect.iscoroutinefunction(getattr(type(connection), "commit", None))
    if "psycopg" in roots:
        return _runner(POSTGRES, awaits, _psycopg_async if awaits else _psycopg, connection)
    if "aiosqlite" in roots:
        return _runner(SQLITE, True, _aiosqlite, connection)
    if "sqlite3" in roots:
        return _runner(SQLITE, False, _sqlite, connection)
    if "sqlalchemy" in roots and hasattr(connection, "commit"):
        dialect = getattr(connection, "dialect", None) or connection.get_bind().dialect
        if dialect.driver not in _DRIVERS:
            raise InvalidRequest(
                f"a SQLAlchemy connection over {dialect.name}+{dialect.driver}: expected one over psycopg or SQLite"
            )
        return _runner(_DRIVERS[dialect.driver], awaits, _sqlalchemy_async if awaits else _sqlalchemy, connection)
    if "django" in roots and hasattr(connection, "vendor"):
        if connection.vendor not in ("postgresql", "sqlite"):
            raise InvalidRequest(f"Django's connection to {connection.vendor}: expected one to PostgreSQL or SQLite")
        return _runner(POSTGRES if connection.vendor == "postgresql" else SQLITE, False, _django, connection)
    raise InvalidRequest(f"connection: cannot enqueue with {type(connection).__name__!r} objects: expected {EXPECTED}")


def _runner(database: str, awaits: bool, run: Callable[[Any, str, Values], Any], connection: Any) -> StatementRunner:
    return StatementRunner(database, awaits, partial(run, connection))


def _refuse_autocommit(how: str) -> None:
    raise InvalidRequest(
        "no transaction is open on this connection, and it commits each statement by itself: the workload would be "
        f"stored even if your own data is not. {how}; without a transaction use tailrace.Client"
    )


def _psycopg_refusal(connection: Any) -> None:
    if connection.autocommit and int(connection.info.transaction_status) == 0:
        _refuse_autocommit("Enqueue inside `with connection.transaction():`")


def _psycopg(connection: Any, statement: str, values: Values) -> Any:
    _psycopg_refusal(connection)
    with connection.cursor(row_factory=_plain) as cursor:
        cursor.execute(statement.replace("?", "%s"), values)
        return cursor.fetchone() if cursor.description else None


async def _psycopg_async(connection: Any, statement: str, values: Values) -> Any:
    _psycopg_refusal(connection)
    async with connection.cursor(row_factory=_plain) as cursor:
        await cursor.execute(statement.replace("?", "%s"), values)
        return await cursor.fetchone() if cursor.description else None


def _plain(cursor: Any) -> type[tuple[Any, ...]]:
    """Makes rows tuples, whichever row type the caller has set."""
    return tuple


def _sqlite_refusal(connection: Any) -> None:
    # In sqlite3's old way (-1, the only one before Python 3.12) an isolation level begins a transaction by itself.
    autocommit = getattr(connection, "autocommit", -1)
    if not connection.in_transaction and (
        autocommit is True or (autocommit == -1 and connection.isolation_level is None)
    ):
        _refuse_autocommit('Begin one with `connection.execute("BEGIN")`')


def _sqlite(connection: Any, statement: str, values: Values) -> Any:
    _sqlite_refusal(connection)
    connection.execute(statement, values)


async def _aiosqlite(connection: Any, statement: str, values: Values) -> Any:
    _sqlite_refusal(connection)
    async with connection.execute(statement, values):
        pass


def _sqlalchemy(connection: Any, statement: str, values: Values) -> Any:
    if hasattr(connection, "connection") and not hasattr(connection, "exec_driver_sql"):
        connection = connection.connection()  # the connection of a Session, in its transaction
    driver = connection.connection.driver_connection
    if _DRIVERS[connection.dialect.driver] == POSTGRES:
        statement = statement.replace("?", "%s")
        if driver.autocommit:
            _refuse_autocommit("Use one without the isolation level AUTOCOMMIT")
    else:
        if not driver.in_transaction:  # an application that begins by an event does so with the first statement
            connection.exec_driver_sql("SELECT 1")
        _sqlite_refusal(driver)
    result = connection.exec_driver_sql(statement, tuple(values))
    return tuple(result.fetchone()) if result.returns_rows else None


async def _sqlalchemy_async(connection: Any, statement: str, values: Values) -> Any:
    return await connection.run_sync(_sqlalchemy, statement, values)


def _django(connection: Any, statement: str, values: Values) -> Any:
    if connection.get_autocommit() and not connection.in_atomic_block:
        _refuse_autocommit("Enqueue inside `with transaction.atomic():`")
    with connection.cursor() as cursor:
        cursor.execute(statement.replace("?", "%s"), values)
        return cursor.fetchone() if cursor.description else None
