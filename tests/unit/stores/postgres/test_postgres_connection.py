"""A connection to PostgreSQL, and the state that it keeps of the last statement on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import psycopg
import pytest
from psycopg import AsyncConnection

from tailrace.stores.postgres.connection import KEPT_ROWS, CursorKeepingConnection, with_schema

ONE, OTHER = with_schema("SELECT 1 FROM S.tasks", "here"), with_schema("SELECT 2")


class Cursor:
    """Answers with so many rows; none: it has no columns."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.rownumber: int | None = None

    async def execute(self, statement: str, arguments: Sequence[Any] | None, binary: bool) -> None:
        self.connection.executed.append((statement, arguments))
        if self.connection.fails:
            raise psycopg.DataError("refused")
        self.rownumber = None if self.connection.answer is None else 0

    async def fetchall(self) -> list[tuple[int]]:
        assert self.connection.answer is not None
        return [(number,) for number in range(self.connection.answer)]


class Connection:
    """Counts the cursors it made."""

    def __init__(self) -> None:
        self.made = 0
        self.answer: int | None = 1
        self.fails = False
        self.executed: list[tuple[str, Sequence[Any] | None]] = []

    def add_notice_handler(self, handler: object) -> None:
        """Has nothing to notice."""

    def cursor(self) -> Cursor:
        self.made += 1
        return Cursor(self)


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def kept(connection: Connection) -> CursorKeepingConnection:
    return CursorKeepingConnection(cast("AsyncConnection[tuple[Any, ...]]", connection))


def test_a_statement_is_the_same_object_each_time() -> None:
    # Given a statement whose S. stands for a schema, when it is asked for twice, then a cursor can know it again
    assert with_schema("SELECT 1 FROM S.tasks", "here") is with_schema("SELECT 1 FROM S.tasks", "here")
    assert with_schema("SELECT 1 FROM S.tasks", "here") == "SELECT 1 FROM here.tasks"
    # And without a schema it stays as it is
    assert with_schema("SELECT 1 FROM S.tasks") == "SELECT 1 FROM S.tasks"


async def test_a_statement_that_runs_again_has_its_cursor_again(
    kept: CursorKeepingConnection, connection: Connection
) -> None:
    # Given a statement that ran, when it runs again with other arguments
    answers = [await kept.rows(ONE, (number,)) for number in range(3)]

    # Then it had the same cursor
    assert answers == [[(0,)]] * 3
    assert connection.made == 1
    assert [arguments for _, arguments in connection.executed] == [(0,), (1,), (2,)]


async def test_another_statement_has_another_cursor(kept: CursorKeepingConnection, connection: Connection) -> None:
    # Given a statement that ran, when others run in turns with it, then each has a cursor of its own
    for statement in (ONE, OTHER, ONE):
        await kept.rows(statement, ())
    assert connection.made == 3


async def test_an_answer_without_rows_is_none(kept: CursorKeepingConnection, connection: Connection) -> None:
    # Given a statement that answers with no columns
    connection.answer = None
    # When it runs, then it has no rows
    assert await kept.rows(ONE, ()) == []


async def test_a_long_answer_goes_with_its_cursor(kept: CursorKeepingConnection, connection: Connection) -> None:
    # Given an answer of more rows than may be kept, and its cursor with it
    connection.answer = KEPT_ROWS + 1
    assert len(await kept.rows(ONE, ())) == KEPT_ROWS + 1
    # When the statement runs again, then it has a new cursor: the old one went with its rows
    connection.answer = KEPT_ROWS
    await kept.rows(ONE, ())
    assert connection.made == 2
    # And that one is kept
    await kept.rows(ONE, ())
    assert connection.made == 2


async def test_an_error_takes_its_cursor_along(kept: CursorKeepingConnection, connection: Connection) -> None:
    # Given a statement that ran, and then failed
    await kept.rows(ONE, ())
    connection.fails = True
    with pytest.raises(psycopg.DataError):
        await kept.rows(ONE, ())
    # When it runs again, then it has a new cursor
    connection.fails = False
    await kept.rows(ONE, ())
    assert connection.made == 2
