"""A Redis that Sentinels watch: its master is found by its name, followed at a switch, and nothing that was accepted is
lost in one where all replicas must have a write; and a server whose data is older than it was, whoever switched it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from scenes import commands
from servers.program import Program
from servers.redis import LocalRedis, started

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.bench.process import free_ports
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=22)

FUNCTIONS = "import tailrace\n\n@tailrace.function\nasync def work(number: int = 0) -> int:\n    return number\n"
#: Workloads that are accepted before and after a switch, at least.
SOME = 100


class Watched:
    """A master with replicas, and three Sentinels that watch it by the name `orders`."""

    def __init__(self, replicas: int) -> None:
        master = started("--repl-diskless-sync-delay", "0")
        replica = ("--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", str(master.port))
        self.servers: list[LocalRedis] = [master, *(started(*replica) for _ in range(replicas))]
        self.folder = Path(tempfile.mkdtemp(prefix="tailrace-sentinel-"))
        self.ports = free_ports(3)
        self.programs = [
            Program(self._command(port), self._answering(port), self.folder / "log") for port in self.ports
        ]
        for program in self.programs:
            program.start()
        self.url = f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/orders"

    def _command(self, port: int) -> list[str]:
        file = self.folder / f"{port}.conf"
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor orders 127.0.0.1 {self.servers[0].port} 2\n"
            "sentinel down-after-milliseconds orders 1000\nsentinel failover-timeout orders 6000\n"
        )
        return ["redis-server", str(file), "--sentinel"]

    def _answering(self, port: int):
        def answers() -> bool:
            try:
                with redis.Redis(port=port, socket_timeout=1.0) as client:
                    return bool(client.ping())
            except redis.RedisError:
                return False

        return answers

    def ask(self, number: int, *words: str):
        with redis.Redis(port=self.ports[number], socket_timeout=2.0) as client:
            return client.execute_command(*words)

    def master(self) -> int:
        """The port of the master, by the first Sentinel."""
        with redis.Redis(port=self.ports[0]) as client:
            return client.sentinel_masters()["orders"]["port"]

    async def agree(self) -> None:
        """Waits until the replicas are complete, and every Sentinel knows all of them."""
        async with asyncio.timeout(40):
            for port in self.ports:
                with redis.Redis(port=port) as client:
                    while (told := client.sentinel_masters().get("orders", {})) and (
                        told["num-slaves"] < 2 or told["num-other-sentinels"] < 2
                    ):
                        await asyncio.sleep(0.05)
            for server in self.servers[1:]:
                with redis.Redis(port=server.port) as client:
                    while client.info()["master_link_status"] != "up" or client.info()["aof_rewrite_in_progress"]:
                        await asyncio.sleep(0.05)

    def stop(self) -> None:
        for program in [*self.programs, *(server.program for server in self.servers)]:
            program.kill()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def watch() -> Iterator[Callable[[int], Watched]]:
    """Starts a master with so many replicas, and its Sentinels."""
    made: list[Watched] = []

    def start(replicas: int) -> Watched:
        made.append(Watched(replicas))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def platform_on(folder: Path, options: str) -> Platform:
    (folder / "config").mkdir()
    (folder / "config" / "stores.yaml").write_text(f"queue: {{engine: redis, {options}}}\n")
    (folder / "functions.py").write_text(FUNCTIONS)
    return Platform(folder / "data", [str(folder / "functions.py")], config=folder / "config", heartbeat=0.3)


async def test_a_master_is_found_by_its_name_past_a_sentinel_that_hangs(watch, tmp_path: Path) -> None:
    # Given a platform that is told of Sentinels, the first of which hangs
    watched = watch(0)
    watched.programs[0].freeze()
    platform = platform_on(tmp_path, f'url: "{watched.url}"')
    try:
        # When a workload is submitted, then it runs within seconds
        await platform.start()
        async with tailrace.AsyncClient(platform.gateway_address) as client, asyncio.timeout(20):
            assert await client.result((await client.submit("work", number=7)).id) == 7
    finally:
        await platform.stop()


async def test_addresses_of_sentinels_that_are_written_as_servers_say_what_to_write(watch, tmp_path: Path) -> None:
    # Given a configuration that names a Sentinel as a server, or its master in a parameter
    sentinel = f"redis://127.0.0.1:{watch(0).ports[0]}/0"
    for number, (url, words) in enumerate(
        {sentinel: "is a Sentinel", f"{sentinel}?sentinel_master=orders": "redis+sentinel://"}.items()
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        platform_on(folder, f'url: "{url}"')
        # When a node starts, then it says what to write instead, without a traceback
        told = await asyncio.to_thread(
            commands.tailrace, "node", "--config", str(folder / "config"), "--data", str(folder / "data"), timeout=40
        )
        assert told.returncode and words in told.stderr and "Traceback" not in told.stderr, told.stderr


@pytest.mark.long(minutes=0.35)
async def test_a_switch_that_was_asked_for_loses_nothing_that_both_replicas_must_have(watch, tmp_path: Path) -> None:
    # Given a platform that finds the master through Sentinels, one of which hangs
    watched = watch(2)
    await watched.agree()
    platform = platform_on(tmp_path, f'url: "{watched.url}", replicas: 2, timeout: 2s')
    accepted: list[str] = []
    before = watched.master()
    try:
        await platform.start()
        watched.programs[2].freeze()
        async with (
            tailrace.AsyncClient(platform.gateway_address) as client,
            GatewayClient(platform.gateway_address) as gateway,
            asyncio.timeout(90),
        ):
            # When the master is switched under load
            while len(accepted) < SOME:
                accepted.append((await client.submit("work", number=len(accepted))).id)
            watched.programs[2].thaw()
            watched.ask(0, "SENTINEL", "FAILOVER", "orders")
            while watched.master() == before or len(accepted) < 3 * SOME:
                accepted.append((await client.submit("work", number=len(accepted))).id)
            # Then every workload that was accepted runs to its end on the new master
            states = {""}
            while states != {"success"}:
                await asyncio.sleep(0.2)  # a look at what runs, once a second replica is there again
                found = []
                with contextlib.suppress(tailrace.TailraceError):
                    for at in range(0, len(accepted), 200):
                        found += await gateway.status(accepted[at : at + 200])
                assert None not in found, f"{found.count(None)} of {len(accepted)} accepted workloads are unknown"
                states = {each.state for each in found if each is not None}
    finally:
        await platform.stop()


async def test_operators_hear_that_accepted_work_may_be_missing(own_redis, tmp_path: Path) -> None:
    # Given a copy of the server's files, made before a workload was accepted
    server = own_redis()
    platform = platform_on(tmp_path, f'url: "{server.address}"')
    try:
        await platform.start()
        async with (
            tailrace.AsyncClient(platform.gateway_address) as client,
            GatewayClient(platform.gateway_address) as gateway,
            asyncio.timeout(60),
        ):
            await client.submit("work", delay="1h")
            copy = shutil.copytree(server._folder, tmp_path / "copy")
            lost = await client.submit("work", delay="1h")
            # When the server comes back with the copy, as a replica that was behind would
            server.program.kill()
            shutil.rmtree(server._folder)
            shutil.copytree(copy, server._folder)
            server.program.start()
            said: list[str] = []
            while not any("missing" in what for what in said):
                await asyncio.sleep(0.1)
                said = [each.what for each in (await gateway.overview()).alerts]
            # Then it is no workload that was never submitted
            environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
            told = await asyncio.to_thread(commands.tailrace, "status", lost.id, "--json", env=environment)
            [row] = json.loads(told.stdout)
            assert row["state"] == "unknown" and "missing" in row["reason"], row
    finally:
        await platform.stop()
