"""A Redis Cluster of three masters for tests, each with a third of the slots."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers.redis import LocalRedis, started

#: The first slot of each master, and the end.
SLOTS = (0, 5461, 10923, 16384)
#: Seconds that the nodes may take to agree.
AGREE_WITHIN = 30.0


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[list[LocalRedis]]:
    """Nodes of one cluster, which the tests of this process share: each test keeps to names of its own."""
    nodes = [started("--cluster-enabled", "yes", "--cluster-node-timeout", "2000") for _ in SLOTS[1:]]
    clients = [redis.Redis(port=node.port) for node in nodes]
    for client, first, end in zip(clients, SLOTS, SLOTS[1:], strict=False):
        client.execute_command("CLUSTER ADDSLOTSRANGE", first, end - 1)
    for node in nodes[1:]:
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port, node.bus)
    until = time.monotonic() + AGREE_WITHIN
    for client in clients:
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            assert time.monotonic() < until, "the nodes do not agree"
            time.sleep(0.02)
        client.close()
    yield nodes
    for node in nodes:
        node.stop()
