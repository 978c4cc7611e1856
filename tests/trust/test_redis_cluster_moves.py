"""A queue and a state on a Redis Cluster while their slot moves to another master key by key, as `redis-cli --cluster
reshard` does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=3)

FUNCTIONS = """
import tailrace

@tailrace.function
async def work(number: int) -> int:
    return number
"""
FACTS = ("kinds", "kind_numbers", "lane_numbers", "meta")
#: Seconds of pause after each key that moved, so that submissions arrive in between.
PAUSE = 0.03
#: Workloads that are submitted at least; those that wait until much later never run in the test.
LEAST = 200


def worst_order(key: str) -> tuple[int, str]:
    """The place of a key in the worst of the orders in which a server may list keys: facts about the queue first, the
    workloads themselves last."""
    name = key.rpartition(":")[2]
    return (0 if name in FACTS else 2 if name in ("payloads", "tasks") else 1), key


class Masters:
    """The masters of a cluster as an operator sees them; the last one is new and has no slot yet."""

    def __init__(self, servers: list, fresh) -> None:
        self.servers = [*servers, fresh]
        self._clients = [redis.Redis(port=server.port) for server in self.servers]
        self.ask(0, "CLUSTER MEET", "127.0.0.1", fresh.port, fresh.bus)
        servers = self.servers
        self._ids = [self.ask(n, "CLUSTER MYID").decode() for n in range(len(servers))]

    def ask(self, master: int, *command):
        return self._clients[master].execute_command(*command)

    def holder(self, slot: int) -> int:
        return next(n for n in range(len(self.servers)) if self.ask(n, "CLUSTER COUNTKEYSINSLOT", slot))

    async def agree(self) -> None:
        """Waits until all masters know each other."""
        while any(
            (told["cluster_known_nodes"], told["cluster_state"]) != ("4", "ok")
            for told in [self.ask(n, "CLUSTER INFO") for n in range(4)]
        ):
            await asyncio.sleep(0.05)

    async def move(self, slot: int, taker: int, *migrate: str) -> list[str]:
        """Moves a slot to a master, with a pause after each key."""
        holder = self.holder(slot)
        self.ask(taker, "CLUSTER SETSLOT", slot, "IMPORTING", self._ids[holder])
        self.ask(holder, "CLUSTER SETSLOT", slot, "MIGRATING", self._ids[taker])
        moved = []
        while keys := sorted(self.ask(holder, "CLUSTER GETKEYSINSLOT", slot, 1000), key=worst_order):
            moved += (keys := keys[:1])
            order = ("MIGRATE", "127.0.0.1", self.servers[taker].port, "", 0, 5000)
            try:
                self.ask(holder, *order, *migrate, "KEYS", *keys)
            except redis.ResponseError as error:  # BUSYKEY: redis-cli says to do it with REPLACE then
                assert "BUSYKEY" in str(error), error
                self.ask(holder, *order, "REPLACE", "KEYS", *keys)
            await asyncio.sleep(PAUSE)
        for master in (taker, holder, *{*range(len(self.servers))} - {taker, holder}):
            try:
                self.ask(master, "CLUSTER SETSLOT", slot, "NODE", self._ids[taker])
            except redis.ResponseError as error:  # a master whose last slot went away becomes a replica
                assert master == 3 and "only with masters" in str(error), error
        return moved

    def close(self) -> None:
        """Leaves the cluster as it was, without the new master."""
        for master, client in enumerate(self._clients):
            if master < 3:
                self.ask(master, "CLUSTER FORGET", self._ids[3])
            client.close()


@pytest.fixture
async def platform(redis_cluster: list, tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "config").mkdir()
    options = f'{{engine: redis, url: "{redis_cluster[0].address}", prefix: moves, cluster: true, timeout: 2s}}'
    (tmp_path / "config" / "stores.yaml").write_text(f"queue: {options}\nstate: {options}\n")
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    platform = Platform(tmp_path / "data", [str(tmp_path / "functions.py")], config=tmp_path / "config", heartbeat=0.3)
    try:
        await platform.start()
        yield platform
    finally:
        await platform.stop()


async def test_no_accepted_workload_is_lost_when_the_slot_moves_key_by_key(
    redis_cluster: list, own_redis, platform: Platform
) -> None:
    masters = Masters(redis_cluster, own_redis("--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
    await asyncio.wait_for(masters.agree(), 20)
    slot = masters.ask(0, "CLUSTER KEYSLOT", "{moves}")
    holder = masters.holder(slot)
    accepted: list[str] = []
    moving = True
    async with (
        tailrace.AsyncClient(platform.gateway_address) as client,
        GatewayClient(platform.gateway_address) as gateway,
    ):

        async def submit() -> None:
            number = 0
            while moving or number < LEAST:
                number += 1
                try:
                    accepted.append((await client.submit("work", number=number)).id)
                except tailrace.TailraceError:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(0.005)

        async def watch() -> None:
            while moving:
                with contextlib.suppress(tailrace.TailraceError):
                    said.update(each.what for each in (await gateway.overview()).alerts)
                await asyncio.sleep(0.2)

        said: set[str] = set()
        # Given workloads that are submitted and run all the time
        async with asyncio.timeout(120):
            tasks = [asyncio.create_task(submit()), asyncio.create_task(watch())]
            while len(accepted) < LEAST // 4:
                await asyncio.sleep(0.01)
            # When the slot moves key by key, also with REPLACE: to another master, to one that has none yet, and back
            for taker, migrate in (((holder + 1) % 3, ()), (3, ("REPLACE",)), (holder, ())):
                assert len(await masters.move(slot, taker, *migrate)) > 3
                before = len(accepted)
                while len(accepted) < before + LEAST // 4:
                    await asyncio.sleep(0.01)
            moving = False
            await asyncio.gather(*tasks)
            # Then every workload that was accepted runs to its end
            states: dict[str, str] = {}
            while set(states.values()) != {"success"}:
                await asyncio.sleep(0.2)  # a look at what runs
                found = [
                    each
                    for at in range(0, len(accepted), 200)
                    for each in await gateway.status(accepted[at : at + 200])
                ]
                states = {id: each.state if each else "unknown" for id, each in zip(accepted, found, strict=True)}
                if "unknown" in states.values():
                    break
    masters.close()
    lost = [id for id, state in states.items() if state == "unknown"]
    assert not lost, f"{len(lost)} of {len(accepted)} accepted workloads are unknown"
    # And an alert said why nothing ran meanwhile
    assert any("slot" in what and "moving" in what for what in said), said
