"""A schema is made whole or not at all, in its own time; steps that a later version brings are taken one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from psycopg import AsyncConnection

from tailrace.stores.postgres.migrations import migrate
from tailrace.stores.postgres.migrations.migrate import MAKING, MigrationStep, require

STEPS = [MigrationStep(number, f"step_{number}", f"step {number}") for number in (1, 2, 3)]


class Schema:
    """A connection to a server with one schema: the steps that are committed, those of each transaction, and the
    bound's end while they were taken."""

    def __init__(self, *committed: int) -> None:
        self.there, self.committed = bool(committed), list(committed)
        self.transactions: list[list[int]] = []
        self.bound = asyncio.timeout(None)
        self.ends: list[float | None] = []
        self.fails = 0
        self._row: tuple[Any, ...] | None = None
        self._now: list[int] | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self._now = []
        try:
            yield
            if self._now:
                self.transactions.append(self._now)
            self.committed += self._now
            self.there = True
        finally:
            self._now = None

    async def execute(self, statement: str | bytes, arguments: Any = ()) -> Schema:
        text = statement.decode() if isinstance(statement, bytes) else statement
        if text == f"step {self.fails}":
            raise RuntimeError("planted")
        if text.startswith("step "):
            self.ends.append(self.bound.when())
        elif text.startswith("INSERT INTO"):
            assert self._now is not None
            self._now.append(arguments[0])
        elif "to_regclass" in text:
            self._row = (self.there or self._now is not None,)
        elif "max(number)" in text:
            self._row = (max([0, *self.committed, *(self._now or [])]),)
        return self

    async def fetchone(self) -> tuple[Any, ...] | None:
        return self._row

    async def require(self, timeout: float | None = None) -> None:
        self.bound = asyncio.timeout(timeout)
        async with self.bound:
            await require(cast("AsyncConnection[tuple[object, ...]]", self), "tailrace", self.bound)


@pytest.fixture(autouse=True)
def three_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "steps", lambda: STEPS)


async def test_a_schema_that_is_not_there_is_made_in_one_transaction() -> None:
    schema = Schema()
    await schema.require()
    assert schema.transactions == [[1, 2, 3]]


async def test_a_making_that_fails_leaves_nothing_and_the_next_one_begins_anew() -> None:
    # Given a making that fails in the middle
    schema = Schema()
    schema.fails = 2
    with pytest.raises(RuntimeError, match="planted"):
        await schema.require()
    assert (schema.there, schema.committed) == (False, [])
    # When it is tried again, then it is made
    schema.fails = 0
    await schema.require()
    assert schema.committed == [1, 2, 3]


async def test_a_making_has_time_of_its_own_and_what_follows_has_what_was_left() -> None:
    # Given a bound of a few seconds
    schema, now = Schema(), asyncio.get_running_loop().time()
    await schema.require(10.0)
    # Then steps had more than that, and what comes behind them has it again
    assert all(end is not None and end >= now + MAKING for end in schema.ends)
    left = schema.bound.when()
    assert left is not None
    assert left < now + MAKING


async def test_steps_that_a_later_version_brings_are_taken_one_by_one() -> None:
    schema = Schema(1)
    done = await migrate.migrate(cast("AsyncConnection[tuple[object, ...]]", schema), "tailrace")
    assert [step.number for step in done] == [2, 3]
    assert schema.transactions == [[2], [3]]
