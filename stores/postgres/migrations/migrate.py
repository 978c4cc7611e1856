"""Migrates a PostgreSQL schema step by step: `NNNN_name.sql`, in order, each in a transaction of its own.

A schema that is newer than this code is refused, since its changes are unknown here, unless its new steps say that this
code may go on beside them. An older schema is refused until an operator runs `tailrace store migrate`. An empty one is
made, in one transaction: it is never seen half made.
"""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from typing import NamedTuple

import psycopg
from psycopg import AsyncConnection

from ....model.errors import ConfigError
from ..server import PostgresOptions, explained

#: Seconds that making a schema may take, or waiting for another process that makes it: a slow disk does not mean that
#: the server is away.
MAKING = 600.0


#: A line in a step: code that knows only the steps up to this number may start, and go on, over a schema that has this
#: step.
BESIDE = re.compile(r"^-- Beside (\d+)\.$", re.MULTILINE)


class MigrationStep(NamedTuple):
    """A step: one numbered file."""

    number: int
    name: str
    text: str

    @property
    def beside(self) -> int:
        """The last step that code must know to go on beside this one: this one itself, unless it says otherwise."""
        said = BESIDE.search(self.text)
        return self.number if said is None else int(said[1])


def steps() -> list[MigrationStep]:
    """All steps, in order."""
    found = []
    for each in files(__package__ or "").iterdir():
        if each.name.endswith(".sql"):
            number, _, name = each.name.removesuffix(".sql").partition("_")
            found.append(MigrationStep(int(number), name, each.read_text(encoding="utf-8")))
    return sorted(found)


async def taken(connection: AsyncConnection[tuple[object, ...]], schema: str) -> int | None:
    """The last step that was applied to a schema; None: it has no tables of ours."""
    cursor = await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{schema}.migrations",))
    row = await cursor.fetchone()
    if row is None or not row[0]:
        return None
    cursor = await connection.execute(f'SELECT coalesce(max(number), 0) FROM "{schema}".migrations')
    row = await cursor.fetchone()
    return int(str(row[0])) if row is not None else 0


async def refuse_newer(connection: AsyncConnection[tuple[object, ...]], schema: str, number: int, known: int) -> None:
    """Raises ConfigError for a schema that a later version of tailrace made, and that this version may not go on
    beside."""
    if number <= known:
        return
    cursor = await connection.execute(
        f"SELECT max(coalesce((to_jsonb(m) ->> 'beside')::int, m.number)) FROM \"{schema}\".migrations AS m"
        " WHERE m.number > %s",
        (known,),
    )  # as JSON: a schema that was made long ago has no such column
    row = await cursor.fetchone()
    if row is None or int(str(row[0])) > known:
        raise ConfigError(
            f"the schema {schema!r} is at step {number}, this version of tailrace knows {known}: run the version that "
            "migrated it, or a later one"
        )


async def pending(connection: AsyncConnection[tuple[object, ...]], schema: str) -> list[MigrationStep]:
    """The steps that `migrate` would apply. Raises ConfigError for a newer schema."""
    known = steps()
    number = await taken(connection, schema) or 0
    await refuse_newer(connection, schema, number, known[-1].number)
    return [step for step in known if step.number > number]


async def migrate(connection: AsyncConnection[tuple[object, ...]], schema: str) -> list[MigrationStep]:
    """Applies the pending steps and returns them: all at once where there was none yet, else one by one. Several
    callers wait for each other. A step that fails leaves nothing behind."""
    done: list[MigrationStep] = []
    while True:
        async with connection.transaction():
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 11))", (f"{schema} migrations",)
            )
            await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
            await connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{schema}".migrations'
                " (number int PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
            )
            left = await pending(connection, schema)
            if not left:
                return done
            await connection.execute(f'ALTER TABLE "{schema}".migrations ADD COLUMN IF NOT EXISTS beside int')
            for step in left if await taken(connection, schema) == 0 else left[:1]:
                await connection.execute(f'SET LOCAL search_path TO "{schema}"')
                await connection.execute("SET LOCAL check_function_bodies TO DEFAULT")  # a step may have set both
                await connection.execute(step.text.encode())
                await connection.execute(
                    f'INSERT INTO "{schema}".migrations (number, name, beside) VALUES (%s, %s, %s)',
                    (step.number, step.name, step.beside),
                )
                done.append(step)


async def bring_up(options: PostgresOptions, *, plan: bool) -> list[MigrationStep]:
    """The steps that the schema of a server lacks; they are applied unless it is only a `plan`."""
    connection = await options.connect()
    try:
        if plan:
            return await pending(connection, options.db_schema)
        return await migrate(connection, options.db_schema)
    except psycopg.Error as error:
        raise explained(error, options.server, "a migration") from None
    finally:
        await connection.close()


async def require(connection: AsyncConnection[tuple[object, ...]], schema: str, bound: asyncio.Timeout) -> None:
    """Makes an empty schema, for which the deadline `bound` is put off. Raises ConfigError for a schema that is older
    or newer than this code."""
    if await taken(connection, schema) is None:
        now, until = asyncio.get_running_loop().time(), bound.when()
        bound.reschedule(now + MAKING)
        await migrate(connection, schema)
        if until is not None:
            bound.reschedule(until + asyncio.get_running_loop().time() - now)
        return
    if left := await pending(connection, schema):
        online = max(step.beside for step in left) < left[0].number
        how = "processes that use it may go on meanwhile: run" if online else "stop the processes that use it and run"
        raise ConfigError(
            f"the schema {schema!r} lacks {len(left)} step(s) of this version of tailrace, the first is "
            f"{left[0].number} ({left[0].name}): {how} `tailrace store migrate` (--plan shows them)"
        )
