"""Steps of the schema of a queue on real PostgreSQL: the code that is beside them, and the words of a node at its
start."""

from __future__ import annotations

import asyncio

import pytest
from servers.queue_nodes import PostgresNodes

from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.workload import Kind
from tailrace.stores.postgres.migrations import migrate
from tailrace.stores.postgres.migrations.migrate import MigrationStep, bring_up, steps
from tailrace.stores.queue.postgres import checked_server
from tailrace.stores.queue.queue import NewItem

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


async def test_a_newer_schema_is_refused_and_an_older_one_names_the_command(nodes: PostgresNodes) -> None:
    await nodes.queue()
    await nodes.run("INSERT INTO S.migrations (number, name) VALUES (99, 'later')")
    with pytest.raises(ConfigError, match="step 99"):
        await nodes.queue()
    await nodes.run(f"DELETE FROM S.migrations WHERE number >= {steps()[-1].number}")
    with pytest.raises(ConfigError, match="tailrace store migrate"):
        await nodes.queue()


async def test_a_node_of_the_version_before_goes_on_and_starts_over_a_schema_whose_new_steps_say_that_it_may(
    nodes: PostgresNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a node of a version that knows fewer steps, and asks for nothing that they have
    async def unasked(*_: object) -> None: ...

    monkeypatch.setattr(checked_server, "look_for_a_crash", unasked)
    monkeypatch.setattr(checked_server.CheckedPostgres, "_agree_on_keys", unasked)
    every = steps()
    [first] = [index for index, step in enumerate(every) if step.number == every[-1].beside + 1]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: every[:first])
        old = await nodes.queue()
        await old.submit([NewItem(MAIL, b"")])
    # Then a start of the newer version says that the steps may be taken while it runs
    with pytest.raises(
        ConfigError, match=r"lacks .* processes that use it may go on meanwhile: run `tailrace store migrate`"
    ):
        await nodes.queue()
    # When they are taken, then both versions have one queue, and the older one starts again, too
    assert [step.number for step in await bring_up(nodes.options(), plan=False)] == [s.number for s in every[first:]]
    await (await nodes.queue()).submit([NewItem(MAIL, b"")])
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: every[:first])
        await (await nodes.queue()).submit([NewItem(MAIL, b"")])
        # But one that is older still does not
        patch.setattr(migrate, "steps", lambda: every[: first - 1])
        with pytest.raises(ConfigError, match=f"is at step {every[-1].number}, this version of tailrace knows"):
            await nodes.queue()
    assert sum((await old.counts()).values()) == 3


async def test_nodes_that_start_at_once_on_an_empty_database_wait_for_the_one_that_makes_the_schema(
    nodes: PostgresNodes,
) -> None:
    # Given no schema, when several nodes start at once, then all of them do, and it was made once
    queues = await asyncio.gather(*(nodes.queue() for _ in range(4)))
    for queue in queues:
        await queue.submit([NewItem(MAIL, b"")])
    assert await nodes.run("SELECT count(*), count(DISTINCT at) FROM S.migrations") == [(len(steps()), 1)]


async def test_a_schema_whose_making_is_cut_off_is_made_whole_by_the_next_start(
    nodes: PostgresNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a start that ends in the middle of it
    broken = MigrationStep(steps()[-1].number, "cut_off", "SELECT 1/0")
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: [*steps()[:-1], broken])
        with pytest.raises(NotConnected):
            await (await nodes.queue()).submit([NewItem(MAIL, b"")])
    # Then nothing is there, and the next start goes on
    assert await nodes.run(f"SELECT to_regclass('{nodes.schema}.migrations')") == [(None,)]
    await (await nodes.queue()).submit([NewItem(MAIL, b"")])


async def test_a_schema_that_is_away_for_a_moment_refuses_nothing_for_good(nodes: PostgresNodes) -> None:
    # Given a queue in use
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")])
    # When its schema is away, as a restore of it does, then that is told as what somebody mends, of no item
    await nodes.run(f"ALTER SCHEMA {nodes.schema} RENAME TO {nodes.schema}_away")
    with pytest.raises(NotConnected, match="tailrace store migrate"):
        await queue.submit([NewItem(MAIL, b"")])
    with pytest.raises(NotConnected, match="tailrace store migrate"):
        await queue.lease(ANY, LEASE, 0)
    # And the queue goes on when it is back
    await nodes.run(f"ALTER SCHEMA {nodes.schema}_away RENAME TO {nodes.schema}")
    await queue.submit([NewItem(MAIL, b"")])
    claimed = await queue.lease(ANY, LEASE, 0)
    assert claimed is not None and len(claimed.ids) == 2
