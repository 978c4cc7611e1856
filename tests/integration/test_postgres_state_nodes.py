"""The state on real PostgreSQL: writes that the schema refuses of anybody, several nodes at once, failovers and
poolers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.drop import Cause, Drop
from tailrace.model.errors import ConfigError, NotConnected, StaleFence, Unavailable
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.control.control import Gate, Quota, QuotaChange
from tailrace.stores.drops import postgres as drops_postgres
from tailrace.stores.postgres.server import PostgresOptions
from tailrace.stores.state.postgres import postgres_state
from tailrace.stores.state.state import StateStores

LEASE = 36.0


class Bench:
    """A schema of its own, nodes that use it, and statements beside our code."""

    def __init__(self, url: str, schema: str) -> None:
        self.url, self.schema = url, schema
        self._nodes: list[StateStores] = []

    async def node(self, *, url: str = "", notify: bool = False, wait: float = 40.0) -> StateStores:
        options = PostgresOptions(url=url or self.url, schema=self.schema, connections=3, timeout=5, notify=notify)
        self._nodes.append(postgres_state(options, StoresConfig(durability="relaxed"), wait=wait))
        await self._nodes[-1].ground.open()
        return self._nodes[-1]

    async def run(self, statement: str) -> list[tuple]:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(statement.replace("S.", f"{self.schema}.").encode())
            return await cursor.fetchall() if cursor.description else []

    async def elsewhere(self) -> None:
        """Moves the tables to another server than the one that gave streams away, over new connections."""
        await self.run("UPDATE S.state_home SET home = 'a server that is gone'")
        await self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            f" AND query LIKE '%{self.schema}.%'"
        )

    async def close(self) -> None:
        for node in self._nodes:
            await node.ground.close()


@pytest.fixture
async def bench(postgres_server: str, postgres_schema: str) -> AsyncIterator[Bench]:
    bench = Bench(postgres_server, postgres_schema)
    yield bench
    await bench.close()


async def test_a_writer_that_bypasses_our_code_is_refused_what_would_be_taken_back(bench: Bench) -> None:
    # Given a stream with an owner, a checkpoint and rows of failed items
    state = await bench.node()
    owner = await state.ownership.take("s", "", "me", LEASE, 0)
    assert owner is not None
    epoch = owner.epoch
    await state.checkpoints.open("s", epoch)
    await state.checkpoints.commit("s", epoch, {"0": Mark(5, b"", 9)})
    await state.ledger.open("s", "0", epoch)
    rows = [LedgerEntry(position, LedgerPlace.PARKING, 1, fence=3) for position in (7, 8, 9)]
    await state.ledger.write("s", "0", [(None, row) for row in rows], epoch)
    run = rows[1]._replace(place=LedgerPlace.RUNNING, fence=4)
    await state.ledger.write("s", "0", [(rows[1], run)], None)
    await state.ledger.write("s", "0", [(run, run._replace(place=LedgerPlace.DONE))], None)
    await state.ledger.passed("s", "0", epoch, 6)
    await state.control.put_gate(Gate("f", "", "pause"))
    row = "INSERT INTO S.ledger (source, partition, position, place, n, fence, owner, entry) VALUES ('s', '0',"
    # Then each of these is refused by the database itself
    for wrong in (
        "UPDATE S.ownership SET version = version + 1, epoch = epoch - 1",
        "UPDATE S.ownership SET version = version - 1",
        "UPDATE S.ownership SET version = version + 1, holder = 'another'",
        "DELETE FROM S.ownership",
        "UPDATE S.checkpoint_sources SET epoch = epoch - 1",
        "DELETE FROM S.checkpoint_sources",
        "UPDATE S.checkpoint_marks SET position = 4",
        "UPDATE S.checkpoint_marks SET handed_out = 8",
        f"UPDATE S.checkpoint_marks SET position = 99, epoch = {epoch - 1}",
        f"INSERT INTO S.checkpoint_marks VALUES ('s', '1', {epoch - 1}, 0, 0, '', '')",
        "UPDATE S.ledger_heads SET epoch = epoch - 1",
        "UPDATE S.ledger_heads SET passed = 5",
        "UPDATE S.ledger SET fence = 2 WHERE position = 7",
        "UPDATE S.ledger SET n = 0 WHERE position = 7",
        "UPDATE S.ledger SET place = 4 WHERE position = 7",
        "UPDATE S.ledger SET place = 1 WHERE position = 7",
        "UPDATE S.ledger SET place = 2 WHERE position = 8",
        f"UPDATE S.ledger SET place = 3, owner = {epoch - 1} WHERE position = 7",
        f"{row} 10, 2, 1, 0, {epoch - 1}, '')",
        f"{row} 10, 2, 1, 0, NULL, '')",
        f"{row} 10, 4, 1, 0, {epoch}, '')",
        f"{row} 5, 2, 1, 0, {epoch}, '')",
        f"{row} 7, 2, 1, 0, {epoch}, '')",
        "UPDATE S.control_version SET version = version - 1",
    ):
        with pytest.raises(psycopg.IntegrityError):
            await bench.run(wrong)
    assert await state.ownership.read("s", "") == owner
    assert await state.ledger.get("s", "0", [7, 8, 9]) == {
        7: rows[0],
        8: run._replace(place=LedgerPlace.DONE),
        9: rows[2],
    }


@pytest.mark.parametrize("way", ["postgres_server", "postgres_pooler"])
async def test_of_nodes_that_want_a_stream_one_has_it_and_the_other_ones_writes_are_refused(
    bench: Bench, way: str, request: pytest.FixtureRequest
) -> None:
    # Given three nodes, with a pooler between or without
    nodes = [await bench.node(url=request.getfixturevalue(way)) for _ in range(3)]
    # When they want the same stream, again and again
    for round in range(5):
        row = await nodes[0].ownership.read("s", "")
        seen = row.version if row else 0
        taken = await asyncio.gather(
            *(node.ownership.take("s", "", f"n{n}", LEASE, seen) for n, node in enumerate(nodes))
        )
        # Then one has it, and writes; who had it before does not
        [winner] = [number for number, owner in enumerate(taken) if owner is not None]
        owner = taken[winner]
        assert owner is not None
        await nodes[winner].checkpoints.open("s", owner.epoch)
        await nodes[winner].checkpoints.commit("s", owner.epoch, {"0": Mark(round)})
        if row is not None:
            with pytest.raises(StaleFence):
                await nodes[(winner + 1) % 3].checkpoints.commit("s", row.epoch, {"0": Mark(99)})
    assert await nodes[0].checkpoints.load("s") == {"0": Mark(4)}


async def test_of_any_number_of_copies_of_one_row_one_starts(bench: Bench) -> None:
    nodes = [await bench.node() for _ in range(3)]
    await nodes[0].ledger.open("s", "0", 5)
    rows = [LedgerEntry(position, LedgerPlace.PARKING, 1) for position in range(20)]
    await nodes[0].ledger.write("s", "0", [(None, row) for row in rows], 5)
    tries = [
        [(row, row._replace(place=LedgerPlace.RUNNING, fence=9, epoch=1 + number)) for row in rows]
        for number in range(3)
    ]
    answers = await asyncio.gather(
        *(node.ledger.write("s", "0", changes, None) for node, changes in zip(nodes, tries, strict=True))
    )
    assert answers[0] == answers[1] == answers[2]
    assert await nodes[1].ledger.get("s", "0", range(20)) == {entry.position: entry for entry in answers[0] if entry}


async def test_what_one_node_changes_another_one_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given nodes that poll so seldom that only a hint can end a wait, and that hear each other
    monkeypatch.setattr("tailrace.stores.postgres.watch.POLL", 1000.0)
    one, other = await bench.node(notify=True), await bench.node(notify=True)
    for node in (one, other):
        await asyncio.wait_for(node.ground._hints.listening.wait(), 20)
    version = (await one.control.snapshot()).version
    waiting = asyncio.create_task(one.control.wait(version, 60))
    while waiting not in asyncio.all_tasks() or not one.ground._server.idle:
        await asyncio.sleep(0.001)
    # When the other one sets a limit
    await other.control.put_quotas(QuotaChange(0, "ann", "", 5.0, (Quota("f", 3),)), 0)
    # Then it is told
    found = await asyncio.wait_for(waiting, 20)
    assert found is not None
    assert found.quotas == [Quota("f", 3)]


async def test_on_another_server_no_stream_is_taken_and_no_owner_from_before_goes_on(bench: Bench) -> None:
    # Given an owner with a checkpoint and a row, and counts that a source keeps without an owner
    living = await bench.node(wait=40.0)
    owner = await living.ownership.take("s", "0", "me", LEASE, 0)
    assert owner is not None
    await living.checkpoints.open("s/0", owner.epoch)
    await living.ledger.open("s", "0", owner.epoch)
    await living.checkpoints.open("counts", 1)
    version = (await living.control.snapshot()).version
    # When the server is another one, which may lack what was written last
    await bench.elsewhere()
    with pytest.raises(NotConnected):  # the connection that broke
        await living.ownership.read("s", "0")
    # Then nothing of the living owner is written
    for write in (
        living.ownership.renew("s", "0", owner.epoch, ()),
        living.checkpoints.commit("s/0", owner.epoch, {"0": Mark(9)}),
        living.ledger.write("s", "0", [(None, LedgerEntry(9, LedgerPlace.PARKING, 1))], owner.epoch),
    ):
        with pytest.raises(StaleFence):
            await write
    await living.checkpoints.commit("counts", 1, {"0": Mark(9)})
    assert (await living.control.snapshot()).version > version
    # And nobody takes the stream for the lease of a source, in whatever process
    row = await living.ownership.read("s", "0")
    assert row is not None and row.epoch > owner.epoch and row.version > owner.version
    for node in (living, await bench.node(wait=40.0)):
        with pytest.raises(Unavailable, match="put back from a copy"):
            await node.ownership.take("s", "0", "you", LEASE, row.version)
    # Until it is over: then under an epoch above all before
    await bench.run("UPDATE S.state_home SET quiet_until = 0")
    taken = await living.ownership.take("s", "0", "you", LEASE, row.version)
    assert taken is not None and taken.epoch > row.epoch
    assert await living.checkpoints.open("s/0", taken.epoch) == {}


async def test_a_failover_behind_connections_that_stay_is_seen_by_the_schema(bench: Bench) -> None:
    node = await bench.node()
    owner = await node.ownership.take("s", "", "me", LEASE, 0)
    assert owner is not None
    await bench.run("CREATE OR REPLACE FUNCTION S.this_timeline() RETURNS text LANGUAGE sql AS $$SELECT '0000BEEF'$$")
    with pytest.raises(StaleFence):
        await node.ownership.renew("s", "", owner.epoch, ())
    row = await node.ownership.read("s", "")
    assert row is not None
    with pytest.raises(Unavailable, match="put back from a copy"):
        await node.ownership.take("s", "", "me", LEASE, row.version)


async def test_many_ranges_of_drops_and_of_letters_that_went_stay_bounded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drops_postgres, "MOST", 10)
    node = await bench.node()
    for number in range(60):
        first = 3 * number
        await node.drops.add("s", "0", [Drop(first, first, 1, Cause.GATE, 1, "ann\0", "\ud800", 1.0)], 3 * 60)
    kept = await node.drops.list("s", 100)
    assert len(kept) <= 21
    assert sum(each.drop.items for each in kept) == 60


# Whole nodes.


async def test_a_log_that_is_a_file_of_one_node_is_read_by_that_node_alone(bench: Bench, tmp_path: Path) -> None:
    # Given a node whose delayed items rest in its own file, and its state on the server
    there = {"engine": "postgres", "url": bench.url, "schema": bench.schema, "notify": False}
    config = StoresConfig(queue=there, state=there, durability="relaxed")
    async with EmbeddedStores(tmp_path / "one", config) as one:
        await one.dead_letters.add([])
        # Then another node with such a file is refused, and told what to do
        with pytest.raises(ConfigError, match=r"`delay_log` of another node .*Set `delay_log`"):
            async with EmbeddedStores(tmp_path / "two", config):
                pass
    # And the first one starts again, wherever its folder is, but not with an unknown server that is away
    (tmp_path / "one").rename(tmp_path / "moved")
    async with EmbeddedStores(tmp_path / "moved", config, reads_log=True):
        pass
    away = config.model_copy(update={"state": there | {"url": "postgresql://127.0.0.1:1/x"}})
    with pytest.raises(NotConnected, match="cannot be reached"):
        async with EmbeddedStores(tmp_path / "moved", away):
            pass
    assert not (tmp_path / "moved" / "state.db").exists()


async def test_what_rests_in_the_former_state_is_not_left_behind(bench: Bench, tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        await stores.control.put_quotas(QuotaChange(0, "ann", "", 5.0, (Quota("f", 3),)), 0)
    there = {"engine": "postgres", "url": bench.url, "schema": bench.schema, "notify": False}
    with pytest.raises(ConfigError, match="still has 1 quotas"):
        async with EmbeddedStores(tmp_path, StoresConfig(state=there, durability="relaxed")):
            pass
