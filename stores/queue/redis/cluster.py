"""A client of a Redis Cluster for a queue: the queue is in one slot, which the client follows from node to node."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ...redis.server import CONNECTIONS, RedisOptions

#: Commands without a key: they go to the node that has the queue.
_OF_A_NODE = frozenset({"CONFIG", "INFO"})
#: Beginnings of commands that the client sends for itself.
_ITS_OWN = ("COMMAND", "CLUSTER")


class OneSlot:
    """The client that RedisServer expects, for a single slot. `key` is any key of the slot."""

    def __init__(self, cluster: RedisCluster, key: str) -> None:
        self._cluster = cluster
        self._key = key
        self._room = asyncio.Semaphore(CONNECTIONS)  # the cluster's own pools refuse instead of waiting
        self.response_callbacks: dict[str, Any] = {}
        self.connection_pool = self

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        """Runs one command at the node that has the slot. Repeats it only if a node redirects it."""
        async with self._room:
            if command[0] in _OF_A_NODE:
                await self._cluster.initialize()
                options["target_nodes"] = self._cluster.get_node_from_key(self._key)
            return await self._cluster.execute_command(*command, **options)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._cluster.aclose()

    async def disconnect(self) -> None:
        """Does nothing: `aclose` has closed the connections."""

    async def dial_anew(self) -> None:
        """Does nothing: the client follows the slot by itself."""


def cluster_client(options: RedisOptions, key: str) -> OneSlot:
    """Returns a client for the keys of one slot; it dials at its first call."""
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
        if not name.startswith(_ITS_OWN):  # answers stay raw, except those to the client's own commands
            del cluster.response_callbacks[name]
    return OneSlot(cluster, key)
