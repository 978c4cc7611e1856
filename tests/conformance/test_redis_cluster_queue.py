"""The queue on a Redis Cluster of three masters: its slot is found from any node, and followed when it moves."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator

import pytest
import redis
from pydantic import SecretStr
from servers.queues import ServedQueue

from tailrace.model.claim import Leased
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.reopening import MISSING
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.testing.conformance.queue import QueueLaws
from tailrace.testing.conformance.queue_callbacks import NoCallbackLaws
from tailrace.testing.conformance.queue_races import RaceLaws

pytestmark = pytest.mark.long(minutes=0.01)

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


class Engine(ServedQueue):
    """A queue reached by the first node."""

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__(RedisQueue, RedisQueueOptions(url=url, prefix=prefix, cluster=True, notify=False))


class TestRedisClusterQueue(QueueLaws, NoCallbackLaws, RaceLaws):
    @pytest.fixture
    async def engine(self, redis_cluster: list) -> AsyncIterator[Engine]:
        engine = Engine(redis_cluster[0].address, f"t-{uuid.uuid4()}")
        await engine.open()
        yield engine
        await engine.queue.close()


class Nodes:
    """The nodes as an operator sees them."""

    def __init__(self, servers: list) -> None:
        self.servers = servers
        self._clients = [redis.Redis(port=server.port) for server in servers]
        self._ids = [self.ask(n, "CLUSTER MYID").decode() for n in range(len(servers))]

    def ask(self, node: int, *command):
        return self._clients[node].execute_command(*command)

    def holder(self, base: str) -> int:
        """The number of the master that has the keys which begin with `base`."""
        slot = self.ask(0, "CLUSTER KEYSLOT", base)
        return next(n for n in range(len(self.servers)) if self.ask(n, "CLUSTER COUNTKEYSINSLOT", slot))

    def move(self, base: str, taker: int) -> None:
        """Moves the slot of these keys from one master to another."""
        slot, holder = self.ask(0, "CLUSTER KEYSLOT", base), self.holder(base)
        self.ask(taker, "CLUSTER SETSLOT", slot, "IMPORTING", self._ids[holder])
        self.ask(holder, "CLUSTER SETSLOT", slot, "MIGRATING", self._ids[taker])
        keys = self.ask(holder, "CLUSTER GETKEYSINSLOT", slot, 1000)
        self.ask(holder, "MIGRATE", "127.0.0.1", self.servers[taker].port, "", 0, 5000, "KEYS", *keys)
        for node in (taker, holder, *{0, 1, 2} - {taker, holder}):
            self.ask(node, "CLUSTER SETSLOT", slot, "NODE", self._ids[taker])

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def nodes(redis_cluster: list):
    nodes = Nodes(redis_cluster)
    yield nodes
    nodes.close()


async def opened(nodes: Nodes) -> RedisQueue:
    """A queue of its own, by the servers' own clock, with something in it."""
    options = RedisQueueOptions(url=nodes.servers[0].address, prefix=f"t-{uuid.uuid4()}", cluster=True, timeout=2)
    queue = RedisQueue(options, wait=1.0)
    await queue.open()
    await queue.submit([NewItem(MAIL, b"here")])
    return queue


async def leased(queue: RedisQueue) -> Leased:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(NotConnected):
                if (found := await queue.lease(ANY, LEASE, 1)) is not None:
                    return found
            await asyncio.sleep(0.01)


async def test_a_slot_that_moves_is_followed_and_waited_for(nodes: Nodes) -> None:
    # Given queues on several of the masters, all reached by the first
    queues = [await opened(nodes) for _ in range(8)]
    assert len({nodes.holder(queue.base) for queue in queues}) > 1
    # When the slot of one moves to another master
    moved = queues[0]
    nodes.move(moved.base, (nodes.holder(moved.base) + 1) % 3)
    # Then nothing of it is handed out for the lease of a source, and all of it afterwards
    assert await moved.lease(ANY, LEASE, 0) is None
    for queue in queues:
        found = await leased(queue)
        assert found.payloads == [b"here"]
        assert await queue.settle(found.fence, found.ids, []) == []
        await queue.close()


async def test_a_master_that_dies_and_comes_back(nodes: Nodes) -> None:
    queue = await opened(nodes)
    server = nodes.servers[nodes.holder(queue.base)]
    server.program.kill()
    with pytest.raises(NotConnected):
        await queue.submit([NewItem(MAIL, b"")])
    server.program.start()
    assert (await leased(queue)).payloads[0] == b"here"
    await queue.close()


async def test_no_second_queue_begins_at_a_node_whose_claim_to_the_slot_is_older(nodes: Nodes) -> None:
    # Given a queue that was seen at a node with a newer claim than the one that has its slot now, and nothing of it
    queue = await opened(nodes)
    holder = nodes.holder(queue.base)
    slot = nodes.ask(0, "CLUSTER KEYSLOT", queue.base)
    nodes.ask(holder, "DEL", *nodes.ask(holder, "CLUSTER GETKEYSINSLOT", slot, 1000))
    seen, queue._home._epoch = queue._home._epoch, 1 << 40
    # When something is submitted, then no queue begins there
    with pytest.raises(NotConnected, match="its claim to the slot"):
        await queue.submit([NewItem(MAIL, b"")])
    assert nodes.ask(holder, "CLUSTER COUNTKEYSINSLOT", slot) == 0
    # But at a node whose claim is as new, and operators hear that accepted work may be missing
    queue._home._epoch = seen
    await queue.submit([NewItem(MAIL, b"")])
    assert [MISSING in each.what for each in queue.troubles()] == [True]
    await queue.close()


async def test_nodes_hint_across_the_cluster(nodes: Nodes) -> None:
    one = await opened(nodes)
    assert (await leased(one)).payloads == [b"here"]
    other = RedisQueue(one._ground.options.model_copy(update={"url": SecretStr(nodes.servers[2].address)}), wait=1.0)
    await other.open()
    await asyncio.wait_for(asyncio.gather(one._hints.listening.wait(), other._hints.listening.wait()), 20)
    waiting = asyncio.create_task(one.lease(ANY, LEASE, 30))
    await other.submit([NewItem(MAIL, b"there")])
    found = await asyncio.wait_for(waiting, 20)
    assert found is not None and found.payloads == [b"there"]
    for queue in (one, other):
        await queue.close()


async def test_a_node_of_a_cluster_says_what_to_set(nodes: Nodes) -> None:
    queue = RedisQueue(RedisQueueOptions(url=nodes.servers[0].address, prefix="a", notify=False))
    with pytest.raises((ConfigError, NotConnected), match="cluster: true"):
        await queue.submit([NewItem(MAIL, b"")])
    await queue.close()
