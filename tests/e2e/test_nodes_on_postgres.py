"""Two nodes that share one PostgreSQL: any gateway answers for everything, and tailers follow a node that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
import yaml

import tailrace
from tailrace.assembly import parts
from tailrace.assembly.free_port import free_port
from tailrace.assembly.processes import Child, spawn, stop
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
HEARTBEAT = 1.0


class Nodes:
    """Two nodes, with a scheduler and a worker that outlive the first one."""

    def __init__(self, folder: Path, postgres: str, redis: str, schema: str) -> None:
        self.folder, self.postgres, self.schema = folder, postgres, schema
        self.files = folder / "files"
        self.files.mkdir()
        self.journal = folder / "journal"
        self.children: dict[str, Child] = {}
        there = {"engine": "postgres", "url": postgres, "schema": schema}
        config = folder / "config"
        (config / "tailers").mkdir(parents=True)
        stores = {"queue": there, "state": there, "durability": "relaxed"}
        stores["delay_log"] = {"engine": "redis", "url": redis, "prefix": schema}
        (config / "stores.yaml").write_text(yaml.safe_dump(stores))
        source = {"kind": "directory", "path": str(self.files), "payload": "content", "poll": 0.1}
        (config / "tailers" / "files.yaml").write_text(
            yaml.safe_dump({"name": "files", "source": source, "function": "work"})
        )
        (config / "tailers" / "queue.yaml").write_text(
            yaml.safe_dump({"name": "queue", "source": {"kind": "queue"}, "results": True})
        )
        self._config = config

    async def start(self) -> None:
        self.scheduler, gateway = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        scheduler = parts.SchedulerSettings(
            config=self._config, heartbeat=HEARTBEAT, listen=self.scheduler, gateway=gateway
        )
        await asyncio.gather(self._node("one"), self._spawn(scheduler))
        async with asyncio.timeout(30):
            while not (await self.owner())[1]:
                await asyncio.sleep(0.05)
        worker = parts.WorkerSettings(
            config=self._config,
            heartbeat=HEARTBEAT,
            modules=(FUNCTIONS,),
            schedulers=(self.scheduler,),
            gateway=gateway,
            changes={"executors": 1},
        )
        await asyncio.gather(self._node("two", gateway), self._spawn(worker))

    async def _node(self, name: str, gateway: str = "127.0.0.1:0") -> None:
        node = parts.NodeSettings(
            config=self._config,
            heartbeat=HEARTBEAT,
            data=self.folder / name,
            scheduler=self.scheduler,
            gateway=gateway,
            store="127.0.0.1:0",
            delay="127.0.0.1:0",
        )
        await self._spawn(node, name)

    async def _spawn(self, settings: parts.PartSettings, name: str = "") -> None:
        journal = {"TAILRACE_TEST_JOURNAL": str(self.journal)}
        self.children[name or settings.name] = await spawn(settings, journal)

    def gateway(self, name: str) -> str:
        return str(self.children[name].ready["addresses"]["gateway"])

    async def owner(self) -> tuple[int, str]:
        """Epoch and holder of the stream of files."""
        async with await psycopg.AsyncConnection.connect(self.postgres) as connection:
            with contextlib.suppress(psycopg.errors.UndefinedTable):
                query = f"SELECT epoch, holder FROM {self.schema}.ownership WHERE source = 'files'".encode()
                if row := await (await connection.execute(query)).fetchone():
                    return row
            return (0, "")

    def put(self, first: int, seconds: float) -> None:
        for number in range(first, first + 6):
            beside = self.folder / f"{number}.new"
            beside.write_text(f'{{"seconds": {seconds}, "fail_first": {int(number % 3 == 0)}}}')
            beside.rename(self.files / f"{number}.json")

    async def noted(self, word: str, count: int) -> list[list[str]]:
        """Waits until the functions noted a word for `count` workloads, each counted once, and returns all their
        notes."""
        async with asyncio.timeout(60):
            while True:
                text = self.journal.read_text() if self.journal.exists() else ""
                lines = [line.split() for line in text.splitlines()]
                if len({line[1] for line in lines if line[0] == word}) >= count:
                    return lines
                await asyncio.sleep(0.05)

    async def end(self) -> None:
        await asyncio.gather(*(stop(child, 0) for child in self.children.values()))


@pytest.fixture
async def nodes(tmp_path: Path, postgres_server: str, redis_server: str, postgres_schema: str) -> AsyncIterator[Nodes]:
    nodes = Nodes(tmp_path, postgres_server, redis_server, postgres_schema)
    try:
        await nodes.start()
        yield nodes
    finally:
        await nodes.end()


@pytest.mark.long(minutes=0.5)
async def test_any_gateway_answers_for_everything_and_a_killed_node_is_followed(nodes: Nodes) -> None:
    one, two = nodes.gateway("one"), nodes.gateway("two")
    async with tailrace.AsyncClient(one) as first, tailrace.AsyncClient(two) as second, GatewayClient(two) as operator:
        # Given workloads that were submitted through either node, gates and quotas that were set at the first
        handles = [await client.submit("work", fail_first=1) for client in (first, second)]
        dead = await second.submit("never_again", why="because")
        async with GatewayClient(one) as other:
            await other.set_gate(Gate("steady", "", "pause", "ann", "a test"))
            await other.set_quota(Quota("work", 50))
            # Then each node answers for the other's
            for handle, client in zip(handles, (second, first), strict=True):
                assert await client.result(handle.id, timeout=30) == f"done {handle.id}"
            async with asyncio.timeout(30):
                while not (letters := (await other.dead_letters())[0]):
                    await asyncio.sleep(0.05)
        assert [each.id for each in letters] == [dead.id]
        assert "because" in (await operator.dead_letter(dead.id)).reason
        limits = await operator.limits()
        assert [(gate.function, gate.action) for gate in limits.gates] == [("steady", "pause")]
        assert [quota for quota in limits.quotas if quota.function == "work"] == [Quota("work", 50)]
        # When the node that owns the stream is killed while items of it run
        epoch, _ = await nodes.owner()
        await nodes.noted("end", 2)
        nodes.put(0, 0.4)
        await nodes.noted("start", 2 + 4)
        os.kill(nodes.children["one"].pid, signal.SIGKILL)
        nodes.put(6, 0.0)
        # Then the other one goes on: every file's item ends, one that fails is tried again, under fences that rise
        lines = await nodes.noted("end", 2 + 12)
        assert (await nodes.owner())[0] > epoch
        # And results of the dead node's workloads are still there
        assert await second.result(handles[0].id) == f"done {handles[0].id}"
    fences: dict[str, list[int]] = {}
    for word, id, fence, *_ in lines:
        if word == "start":
            fences.setdefault(id, []).append(int(fence))
    assert all(rising == sorted(set(rising)) for rising in fences.values())
