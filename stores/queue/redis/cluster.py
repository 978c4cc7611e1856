"""A client of a Redis Cluster, for a queue: one slot, whichever node has it. It follows the slot when it moves."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ...redis.server import CONNECTIONS, RedisOptions

#: Commands without a key: they are for the node that has the queue.
_OF_A_NODE = frozenset({"CONFIG", "INFO"})
#: What the client asks for itself.
_ITS_OWN = ("COMMAND", "CLUSTER")


class OneSlot:
    """The client that RedisServer asks for. `key` is any key of the slot."""

    def __init__(self, cluster: RedisCluster, key: str) -> None:
        self._cluster = cluster
        self._key = key
        self._room = asyncio.Semaphore(CONNECTIONS)  # the cluster's own pools refuse instead of waiting
        self.response_callbacks: dict[str, Any] = {}
        self.connection_pool = self

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        """One command, at the node that has the slot. Nothing is tried again but what a node sends elsewhere."""
        async with self._room:
            if command[0] in _OF_A_NODE:
                await self._cluster.initialize()
                options["target_nodes"] = self._cluster.get_node_from_key(self._key)
            return await self._cluster.execute_command(*command, **options)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._cluster.aclose()

    async def disconnect(self) -> None:
        """Closes the connections."""

    async def dial_anew(self) -> None:
        """Nothing: the client goes where the slot is by itself."""


def cluster_client(options: RedisOptions, key: str) -> OneSlot:
    """A client for the keys of one slot; it dials at its first call."""
    cluster = RedisCluster.from_url(
        options.url.get_secret_value(),
        max_connections=CONNECTIONS,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=options.connect_timeout,
        socket_timeout=None,  # RedisOptions.client says why
        **options.given(),
    )
    for name in [*cluster.response_callbacks]:
        if not name.startswith(_ITS_OWN):  # answers as they come, but to what it asks itself
            del cluster.response_callbacks[name]
    return OneSlot(cluster, key)
