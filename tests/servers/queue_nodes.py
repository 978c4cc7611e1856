"""Nodes of one queue on a server, under a clock of the test's own, and access to the server beside our code."""

from __future__ import annotations

import contextlib
import uuid
from abc import ABC, abstractmethod
from typing import Any

import psycopg

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres.pollers import PostgresPollers
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.redis.pollers import RedisPollers
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.testing.clock import ManualClock


class QueueNodes(ABC):
    """The nodes that the laws of several nodes ask for. `no_keys` are those that this server alone cannot keep."""

    no_keys: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._queues: list[Any] = []

    @abstractmethod
    def _made(self, notify: bool, poll: float, config: dict[str, Any], **options: Any) -> Any:
        """Another node's queue."""

    @abstractmethod
    def roll(self, queue: Any) -> Any:
        """Pollers as this node counts them."""

    @abstractmethod
    async def silence(self, poller: str) -> None:
        """Has a poller last heard of 80 s ago."""

    async def queue(self, *, notify: bool = False, poll: float = 1.0, **said: Any) -> Any:
        """Opens another node. Beside options of its own it takes those of stores.yaml."""
        config = {name: said.pop(name) for name in [*said] if name in StoresConfig.model_fields}
        queue = self._made(notify, poll, config, **said)
        self._queues.append(queue)
        await queue.open()
        return queue

    async def close(self) -> None:
        for queue in self._queues:
            await queue.close()


class PostgresNodes(QueueNodes):
    """A schema of its own and statements beside our code. `real`: by the server's own clock."""

    no_keys = ("a\0b",)

    def __init__(self, url: str, schema: str, *, real: bool = False) -> None:
        super().__init__()
        self.url, self.schema, self._real = url, schema, real

    def _made(self, notify: bool, poll: float, config: dict[str, Any], *, url: str = "") -> PostgresQueue:
        given: Any = {} if self._real else {"store_time": lambda: int(self.clock.wall() * 1e6), "clock": self.clock}
        return PostgresQueue(
            self.options(url, notify=notify, poll_interval=poll),
            StoresConfig(**{"durability": "relaxed", **config}),
            **given,
        )

    def options(self, url: str = "", **said: Any) -> PostgresQueueOptions:
        """Options that lead to the schema; by another address where one is given."""
        return PostgresQueueOptions(url=url or self.url, schema=self.schema, connections=3, timeout=5, **said)

    async def run(self, statement: str) -> list[tuple]:
        """Runs a statement, in which S. stands for the schema."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(statement.replace("S.", f"{self.schema}.").encode())
            return await cursor.fetchall() if cursor.description else []

    def roll(self, queue: PostgresQueue) -> PostgresPollers:
        return PostgresPollers(queue._read)

    async def silence(self, poller: str) -> None:
        await self.run(f"UPDATE S.pollers SET seen = seen - 80000000 WHERE poller = '{poller}'")


class RedisNodes(QueueNodes):
    """A prefix of its own. `real`: by the server's own clock."""

    def __init__(self, url: str, *, real: bool = False) -> None:
        super().__init__()
        self.url, self.prefix, self._real = url, f"t-{uuid.uuid4()}", real

    def _made(
        self, notify: bool, poll: float, config: dict[str, Any], *, wait: float = 40.0, **said: Any
    ) -> RedisQueue:
        given: Any = {} if self._real else {"store_time": lambda: int(self.clock.wall() * 1e6), "clock": self.clock}
        asked = {"timeout": 5, "notify": notify, "poll_interval": poll, **said}
        options = RedisQueueOptions(url=self.url, prefix=self.prefix, **asked)
        return RedisQueue(options, StoresConfig(**config), wait=wait, **given)

    def roll(self, queue: RedisQueue) -> RedisPollers:
        return RedisPollers(queue._server, queue.base)

    async def silence(self, poller: str) -> None:
        await self._queues[-1]._server.call("ZINCRBY", f"{self._queues[-1].base}pollers", -80_000_000, poller)

    async def close(self) -> None:
        await super().close()
        options = RedisQueueOptions(url=self.url)
        async with options.client() as client:
            with contextlib.suppress(Exception):
                if keys := [key async for key in client.scan_iter(f"{{{self.prefix}}}:*")]:
                    await client.delete(*keys)
            await client.connection_pool.disconnect()
