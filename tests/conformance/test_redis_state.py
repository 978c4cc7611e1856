"""Every store of the state on Redis obeys the laws of its kind, on a real server; some on a cluster of masters too."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import redis

from tailrace.model.errors import ConfigError, Unavailable
from tailrace.stores.checkpoints.redis import RedisCheckpoints
from tailrace.stores.config import StoresConfig
from tailrace.stores.control.redis import RedisControl
from tailrace.stores.dead_letters.redis import RedisDeadLetters
from tailrace.stores.drops.redis import RedisDrops
from tailrace.stores.inventory.redis import RedisInventory
from tailrace.stores.ledger.redis import RedisLedger
from tailrace.stores.ownership.redis import RedisOwnership
from tailrace.stores.replays.redis import RedisReplays
from tailrace.stores.results.redis import RedisResults
from tailrace.stores.schedules.redis import RedisSchedules
from tailrace.stores.segments.redis import RedisSegments
from tailrace.stores.state.redis import state_on
from tailrace.stores.state.redis_server import RedisStateOptions, StateServer
from tailrace.stores.usage.redis import RedisUsage
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.bench import StoreBench, StoreLaws
from tailrace.testing.conformance.checkpoints import CheckpointLaws
from tailrace.testing.conformance.control import ControlLaws
from tailrace.testing.conformance.dead_letters import BOUND, DeadLetterLaws, letter
from tailrace.testing.conformance.drops import DropLaws
from tailrace.testing.conformance.inventory import InventoryLaws
from tailrace.testing.conformance.ledger import LedgerLaws
from tailrace.testing.conformance.moved import MovedLaws
from tailrace.testing.conformance.ownership import OwnershipLaws
from tailrace.testing.conformance.replays import ReplayLaws
from tailrace.testing.conformance.results import MAX_BYTES, RETENTION, ResultLaws
from tailrace.testing.conformance.schedules import ScheduleLaws
from tailrace.testing.conformance.segments import SegmentLaws
from tailrace.testing.conformance.usage import UsageLaws

#: Mark of tests that need three masters.
LONG = pytest.mark.long(minutes=0.01)
_FORGET = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', key) end"


class RedisStateBench:
    """A store of its own on a server that others use too; its keys go with it."""

    def __init__(self, url: str, make: Callable[[StateServer, ManualClock], Any], *, cluster: bool = False) -> None:
        self.clock = ManualClock()
        self._options = RedisStateOptions(url=url, prefix=f"t-{uuid.uuid4()}", cluster=cluster)
        self._make = make

    async def __aenter__(self):
        self.server = StateServer(self._options, durability="relaxed", clock=self.clock)
        self.engine = self._make(self.server, self.clock)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.call("EVAL", _FORGET, 1, self.server.key("home"), f"{{{self._options.prefix}}}:*")
        await self.server.close()

    async def reopen(self) -> None:
        await self.server.close()
        await self.__aenter__()


class OnRedis:
    """Base of each class below, beside its laws: makes the store."""

    make: Callable[[StateServer, ManualClock], Any]

    @pytest.fixture(autouse=True)
    def server(self, redis_server: str) -> None:
        self.url = redis_server

    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Any]]:
        return RedisStateBench(self.url, type(self).make)


class TestRedisCheckpoints(OnRedis, CheckpointLaws):
    make = lambda server, clock: RedisCheckpoints(server)  # noqa: E731


class TestRedisControl(OnRedis, ControlLaws):
    make = RedisControl


class TestRedisDeadLetters(OnRedis, DeadLetterLaws):
    make = lambda server, clock: RedisDeadLetters(server, BOUND)  # noqa: E731


class TestRedisRooms(OnRedis, StoreLaws[Any]):
    make = lambda server, clock: RedisDeadLetters(server, 3)  # noqa: E731

    async def test_letters_of_nodes_that_know_of_no_rooms_are_counted(self, store: Any) -> None:
        # Given letters, some of which were written by such a node
        await store.engine.add([letter("a"), letter("b"), letter("c", "g")])
        for key in ("rooms", "book"):
            await store.server.call("HDEL", store.server.key("dead_letters", key), '["f",""]', "in rooms")
        # When more die, Then each room has what it has
        assert await store.engine.add([letter("d"), letter("e"), letter("a")]) == ["e"]
        assert [room.held for room in await store.engine.rooms([("f", ""), ("g", "")])] == [3, 1]


class TestRedisDrops(OnRedis, DropLaws):
    make = lambda server, clock: RedisDrops(server)  # noqa: E731


class TestRedisInventory(OnRedis, InventoryLaws):
    make = lambda server, clock: RedisInventory(server)  # noqa: E731


class TestRedisLedger(OnRedis, LedgerLaws):
    make = lambda server, clock: RedisLedger(server)  # noqa: E731


class MovingBench(RedisStateBench):
    """A bench that moves its server: one that lost its last writes looks like one of which an operator said so."""

    async def move(self) -> None:
        await self.server.call("HSET", self.server.key("home"), "run", "")
        await self.reopen()
        await self.server.look()

    async def wait_out(self) -> None:
        self.clock.advance(40)
        await self.server.call("HSET", self.server.key("home"), "quiet", 0)


class TestRedisMoved(OnRedis, MovedLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Any]]:
        return MovingBench(self.url, lambda server, clock: state_on(server, StoresConfig(), clock))


class TestRedisOwnership(OnRedis, OwnershipLaws):
    make = lambda server, clock: RedisOwnership(server)  # noqa: E731


class TestRedisReplays(OnRedis, ReplayLaws):
    make = lambda server, clock: RedisReplays(server)  # noqa: E731


class TestRedisResults(OnRedis, ResultLaws):
    make = lambda server, clock: RedisResults(server, clock, retention=RETENTION, max_bytes=MAX_BYTES)  # noqa: E731


class TestRedisSchedules(OnRedis, ScheduleLaws):
    make = lambda server, clock: RedisSchedules(server)  # noqa: E731


class TestRedisSegments(OnRedis, SegmentLaws):
    make = lambda server, clock: RedisSegments(server)  # noqa: E731


class TestRedisUsage(OnRedis, UsageLaws):
    make = lambda server, clock: RedisUsage(server)  # noqa: E731


class OnCluster(OnRedis):
    """A cluster of three masters, reached by the first one."""

    @pytest.fixture(autouse=True)
    def server(self, redis_cluster: list) -> None:
        self.url = redis_cluster[0].address

    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Any]]:
        return RedisStateBench(self.url, type(self).make, cluster=True)


@LONG
class TestControlOnCluster(OnCluster, ControlLaws):
    make = RedisControl


@LONG
class TestDeadLettersOnCluster(OnCluster, DeadLetterLaws):
    make = lambda server, clock: RedisDeadLetters(server, BOUND)  # noqa: E731


@LONG
class TestLedgerOnCluster(OnCluster, LedgerLaws):
    make = lambda server, clock: RedisLedger(server)  # noqa: E731


@LONG
class TestOwnershipOnCluster(OnCluster, OwnershipLaws):
    make = lambda server, clock: RedisOwnership(server)  # noqa: E731


@LONG
class TestSchedulesOnCluster(OnCluster, ScheduleLaws):
    make = lambda server, clock: RedisSchedules(server)  # noqa: E731


def move_slot(servers: list, key: str) -> None:
    """Moves a slot with all its keys from its master to the next one."""
    clients = [redis.Redis(port=server.port) for server in servers]
    ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
    slot = clients[0].execute_command("CLUSTER KEYSLOT", key)
    holder = next(n for n, each in enumerate(clients) if each.execute_command("CLUSTER COUNTKEYSINSLOT", slot))
    taker = (holder + 1) % 3
    clients[taker].execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[holder])
    clients[holder].execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[taker])
    keys = clients[holder].execute_command("CLUSTER GETKEYSINSLOT", slot, 1000)
    clients[holder].execute_command("MIGRATE", "127.0.0.1", servers[taker].port, "", 0, 5000, "KEYS", *keys)
    for number in (taker, holder, 3 - taker - holder):
        clients[number].execute_command("CLUSTER SETSLOT", slot, "NODE", ids[taker])
    for client in clients:
        client.close()


@LONG
async def test_a_slot_that_moves_is_followed_and_nothing_is_taken_for_the_lease_of_a_source(
    redis_cluster: list,
) -> None:
    clock = ManualClock()
    options = RedisStateOptions(url=redis_cluster[0].address, prefix=f"t-{uuid.uuid4()}", cluster=True)
    server = StateServer(options, clock=clock)
    ownership = RedisOwnership(server)
    owner = await ownership.take("s", "0", "me", 36, 0)
    assert owner is not None
    move_slot(redis_cluster, server.key("home"))
    with pytest.raises(Unavailable, match="no stream is taken"):
        await ownership.take("other", "0", "me", 36, 0)
    assert (await ownership.renew("s", "0", owner.epoch, ("x",))).epoch == owner.epoch
    clock.advance(40)
    await server.call("HSET", server.key("home"), "quiet", 0)
    assert await ownership.take("other", "0", "me", 36, 0) is not None
    await server.close()


@LONG
async def test_a_node_of_a_cluster_says_what_to_set(redis_cluster: list) -> None:
    server = StateServer(RedisStateOptions(url=redis_cluster[0].address, prefix="a"))
    with pytest.raises(ConfigError, match="cluster: true"):
        await server.look()
    await server.close()
