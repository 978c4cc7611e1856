"""`tailrace.enqueue`: submits a workload as part of the application's own database transaction.

After a rollback there is no workload; after a commit there is one, for ever (the transactional outbox of Richardson's
*Microservices Patterns*; enqueueing inside the caller's transaction as in River, Oban and Delayed Job). No worker sees
it before the commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from ...foundation.clock import SYSTEM_CLOCK
from ...model.errors import ConfigError, InvalidRequest
from ...model.priority import DEFAULT_PRIORITY, Priority
from ...sdk.call import Call
from . import postgres_table, sqlite_table
from .connections import POSTGRES, SQLITE, StatementRunner, runner_of
from .row import new_row
from .table import SCHEMA, TABLE

if TYPE_CHECKING:
    from ...sdk.function import Function


class Enqueued(NamedTuple):
    """The result of `enqueue`. `id`: the workload's id, valid from the commit on, if the transaction was in the
    database of a queue on PostgreSQL; otherwise empty, because the workload gets its id when it leaves the outbox. (If
    its `dedupe_key` turns out to be known, the workload is the earlier one, and this id never names anything.) `token`
    names the row of the outbox."""

    id: str
    token: str


class _Blocking(Protocol):
    def commit(self) -> None: ...


class _Awaiting(Protocol):
    def commit(self) -> Awaitable[Any]: ...


@overload
def enqueue(
    connection: _Blocking,
    function: Function[..., Any] | str,
    /,
    *args: Any,
    schema: str | None = None,
    outbox: bool | str | None = None,
    delay: float | str | None = None,
    at: datetime | float | None = None,
    priority: str | int | Priority | None = None,
    collection: str | None = None,
    tenant: str = "",
    key: str = "",
    dedupe_key: str = "",
    headers: Mapping[str, str] | None = None,
    expires_after: float | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Enqueued: ...
@overload
def enqueue(
    connection: _Awaiting,
    function: Function[..., Any] | str,
    /,
    *args: Any,
    schema: str | None = None,
    outbox: bool | str | None = None,
    delay: float | str | None = None,
    at: datetime | float | None = None,
    priority: str | int | Priority | None = None,
    collection: str | None = None,
    tenant: str = "",
    key: str = "",
    dedupe_key: str = "",
    headers: Mapping[str, str] | None = None,
    expires_after: float | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Awaitable[Enqueued]: ...
def enqueue(
    connection: Any,
    function: Function[..., Any] | str,
    /,
    *args: Any,
    schema: str | None = None,
    outbox: bool | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Enqueued | Awaitable[Enqueued]:
    """Leaves a workload in the transaction that is open on `connection`; the caller commits or rolls back.

    connection   psycopg 3, sqlite3, aiosqlite, SQLAlchemy 2 (Session, Connection and the async ones) over psycopg or
                 SQLite, or Django's; with an asynchronous one this returns what is to be awaited
    schema       on PostgreSQL: the schema of the queue in this very database (default "tailrace")
    outbox       True, or a table's name (default "tailrace_outbox"): into that table of the caller's own database
                 instead, from which a tailer of kind `outbox` carries rows to the queue. On SQLite it is always so;
                 there a queue's own file has such a table, too

    The other arguments are those of `tailrace.Call`; where the function has a parameter named schema or outbox, give
    the arguments in `arguments`. The priority is the declared function's; for one that is only named it is `eventual`.

    Raises InvalidPayload and InvalidRequest before anything is written, ConfigError where the database has no such
    schema or table or the role may not use it; other errors of the database are raised as its driver raises them.
    """
    declared: Any = function
    if arguments is None and not isinstance(function, str):
        for name, given in (("schema", schema), ("outbox", outbox)):
            if given is not None and name in getattr(function, "parameters", ()):
                raise InvalidRequest(
                    f"{name!r} is both an argument of {declared.spec.name} and an option of enqueue: give the argument "
                    f"in arguments={{{name!r}: …}}, and the option as you did"
                )
    call = Call(function, *args, arguments=arguments, **kwargs)
    own = DEFAULT_PRIORITY if isinstance(function, str) else declared.spec.priority
    row = new_row(call, int(own) if call.priority is None else call.priority, SYSTEM_CLOCK.wall())
    runner = runner_of(connection)
    table = outbox if isinstance(outbox, str) else TABLE if outbox or runner.database == SQLITE else ""
    if table and schema is not None:
        raise InvalidRequest(
            "schema: only a queue on PostgreSQL has one, and this workload goes into an outbox: leave schema out"
        )
    if not table:
        statement = postgres_table.into_queue(schema or SCHEMA)
    else:
        statement = (postgres_table if runner.database == POSTGRES else sqlite_table).into_table(table)
    where = table or f"{schema or SCHEMA}.enqueue"
    if runner.awaits:
        return _awaited(runner, statement, row, where)
    try:
        return _enqueued(runner.run(statement, tuple(row)), row.token)
    except Exception as error:
        if (refusal := _refusal(error, where, runner.database)) is None:
            raise
        raise refusal from error


async def _awaited(runner: StatementRunner, statement: str, row: Any, where: str) -> Enqueued:
    try:
        return _enqueued(await runner.run(statement, tuple(row)), row.token)
    except Exception as error:
        if (refusal := _refusal(error, where, runner.database)) is None:
            raise
        raise refusal from error


def _enqueued(answer: Any, token: str) -> Enqueued:
    return Enqueued("" if answer is None else f"{answer[0]:016x}", token)


def _refusal(error: Exception, where: str, database: str) -> ConfigError | None:
    """The error to raise for a database error that only the operator can mend; None: the driver's own error is best."""
    cause = getattr(error, "orig", None) or error.__cause__ or error
    code = str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")
    if code == "42501":
        role = "GRANT USAGE ON SCHEMA … TO …" if where.endswith(".enqueue") else f"GRANT INSERT ON {where} TO …"
        return ConfigError(f"this role may not enqueue into {where} ({cause}): {role} lets it")
    if code in ("3F000", "42883") and where.endswith(".enqueue"):
        schema = where.removesuffix(".enqueue")
        return ConfigError(
            f"this database has no queue in a schema {schema!r}: name the queue's schema, or, when the queue is in "
            "another database, enqueue with outbox=True (docs/guides/transactional-enqueue.md)"
        )
    if code == "42P01" or (database == SQLITE and f"no such table: {where}" in str(cause)):
        return ConfigError(
            f"this database has no table {where!r}: `tailrace outbox create` makes it or prints its SQL, and a tailer "
            "of kind `outbox` reads it (docs/guides/transactional-enqueue.md)"
        )
    return None
