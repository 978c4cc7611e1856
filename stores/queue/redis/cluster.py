"""A client of a Redis Cluster for a queue: the queue is in one slot, which the client follows from node to node."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from redis import exceptions as errors
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ...redis.options import CONNECTIONS, RedisOptions

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
        """Runs one command at the node that has the slot. Repeats it only if a node redirects it. Raises TryAgainError
        where no node has all of the slot."""
        async with self._room:
            try:
                if command[0] in _OF_A_NODE:
                    await self._cluster.initialize()
                    options["target_nodes"] = self._cluster.get_node_from_key(self._key)
                return await self._cluster.execute_command(*command, **options)
            except AttributeError:  # of redis-py: the slot comes to a master that had none, which it does not know yet
                raise errors.TryAgainError("the node to which the slot moves was not known") from None
            except errors.ClusterError as error:
                if "TTL" not in str(error):
                    raise
                raise errors.TryAgainError("each node sends on to another") from None

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._cluster.aclose()

    async def disconnect(self) -> None:
        """Does nothing: `aclose` has closed the connections."""

    async def dial_anew(self) -> None:
        """Learns anew which node has which slot. A master whose last slot went away becomes a replica, and sends only
        calls with a key on to the new one."""
        with contextlib.suppress(errors.RedisError, OSError):
            await self._cluster.nodes_manager.initialize()


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
