"""Names of prepared statements on PostgreSQL, where the server itself answers: a name that is gone, or a schema that
changed, costs no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.postgres.server import PostgresOptions, PostgresServer

NAMES = "SELECT count(*) FROM pg_prepared_statements"
SUM = "SELECT 40 + %s::int"


async def nothing(*_: Any) -> None:
    """Skips the look at a new connection."""


@pytest.fixture
async def servers() -> AsyncIterator[list[PostgresServer]]:
    made: list[PostgresServer] = []
    yield made
    for each in made:
        await each.close()


def server(servers: list[PostgresServer], url: str) -> PostgresServer:
    servers.append(PostgresServer(PostgresOptions(url=url, connections=1), nothing))
    servers[-1].open()
    return servers[-1]


@pytest.mark.parametrize(("way", "names"), [("postgres_server", 1), ("postgres_pooler", 0)])
async def test_a_statement_has_a_name_where_the_server_itself_answers(
    way: str, names: int, servers: list[PostgresServer], request: pytest.FixtureRequest
) -> None:
    # Given a server that is reached directly, or through a pooler that gives each statement another connection
    one = server(servers, request.getfixturevalue(way))

    # When a statement runs again and again
    answers = [await one.rows(SUM, (number,)) for number in range(5)]

    # Then its answers are the same either way, and only the server itself was given a name for it
    assert answers == [[(40 + number,)] for number in range(5)]
    assert await one.rows(NAMES) == [(names,)]


async def test_a_name_that_is_gone_costs_nobody_an_answer(postgres_server: str, servers: list[PostgresServer]) -> None:
    # Given a statement with a name, which somebody in between makes the server forget
    one = server(servers, postgres_server)
    for number in range(4):
        await one.rows(SUM, (number,))
    await one.rows("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$")  # as it is, psycopg would take notice

    # When it runs again, then it answers, without names from then on
    assert [await one.rows(SUM, (number,)) for number in range(4)] == [[(40 + number,)] for number in range(4)]
    assert await one.rows(NAMES) == [(0,)]


async def test_a_statement_whose_answer_changed_with_the_schema_goes_on(
    postgres_server: str, postgres_schema: str, servers: list[PostgresServer]
) -> None:
    # Given a statement with a name over a table that another process gives one more column
    one, other = server(servers, postgres_server), server(servers, postgres_server)
    await other.rows(f"CREATE SCHEMA IF NOT EXISTS {postgres_schema}")
    await other.rows(f"CREATE TABLE {postgres_schema}.grown (a int)")
    await other.rows(f"INSERT INTO {postgres_schema}.grown VALUES (1)")
    for _ in range(4):
        assert await one.rows(f"SELECT * FROM {postgres_schema}.grown") == [(1,)]
    await other.rows(f"ALTER TABLE {postgres_schema}.grown ADD COLUMN b int")

    # When it runs again, then it answers as the table is now
    assert await one.rows(f"SELECT * FROM {postgres_schema}.grown") == [(1, None)]


async def test_a_statement_takes_arguments_of_any_type_each_time(
    postgres_server: str, servers: list[PostgresServer]
) -> None:
    # Given a statement that runs again and again on one connection, prepared in the end
    one = server(servers, postgres_server)
    given = [(1, "a", b"\0"), (None, None, None), (1 << 40, "", b""), (-1, "ü", b"\xff"), (7, None, b"x")]

    # When its arguments are of other types, or none, each time
    found = [await one.rows("SELECT %s::bigint, %s::text, %s::bytea", each) for each in given * 2]

    # Then each answer has them as they were
    assert [row for [row] in found] == given * 2


async def test_what_was_refused_runs_with_the_next_arguments(
    postgres_server: str, servers: list[PostgresServer]
) -> None:
    # Given a statement that the server refused with these arguments
    one = server(servers, postgres_server)
    await one.rows("SELECT 1 / %s::int", (1,))
    with pytest.raises(NotConnected, match="division by zero"):
        await one.rows("SELECT 1 / %s::int", (0,))

    # When it runs with others, then it answers
    assert await one.rows("SELECT 1 / %s::int", (1,)) == [(1,)]
