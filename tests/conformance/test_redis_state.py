"""Every store of the state on Redis obeys the laws of its kind, on a real server."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tailrace.stores.checkpoints.redis import RedisCheckpoints
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
from tailrace.stores.state.redis_server import RedisStateOptions, StateServer
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.checkpoints import CheckpointLaws
from tailrace.testing.conformance.control import ControlLaws
from tailrace.testing.conformance.dead_letters import DeadLetterLaws
from tailrace.testing.conformance.drops import DropLaws
from tailrace.testing.conformance.inventory import InventoryLaws
from tailrace.testing.conformance.ledger import LedgerLaws
from tailrace.testing.conformance.ownership import OwnershipLaws
from tailrace.testing.conformance.replays import ReplayLaws
from tailrace.testing.conformance.results import MAX_BYTES, RETENTION, ResultLaws
from tailrace.testing.conformance.schedules import ScheduleLaws
from tailrace.testing.conformance.segments import SegmentLaws

_FORGET = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', key) end"


class RedisStateBench:
    """A store of its own on a server that others use too; its keys go with it."""

    def __init__(self, url: str, make: Callable[[StateServer, ManualClock], Any]) -> None:
        self.clock = ManualClock()
        self._options = RedisStateOptions(url=url, prefix=f"t-{uuid.uuid4()}")
        self._make = make

    async def __aenter__(self):
        self.server = StateServer(self._options, durability="relaxed", clock=self.clock)
        self.engine = self._make(self.server, self.clock)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.call("EVAL", _FORGET, 0, f"{{{self._options.prefix}}}:*")
        await self.server.close()

    async def reopen(self) -> None:
        await self.server.close()
        await self.__aenter__()


class OnRedis:
    """What each class below has of its laws: how its store is made."""

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
    make = lambda server, clock: RedisDeadLetters(server)  # noqa: E731


class TestRedisDrops(OnRedis, DropLaws):
    make = lambda server, clock: RedisDrops(server)  # noqa: E731


class TestRedisInventory(OnRedis, InventoryLaws):
    make = lambda server, clock: RedisInventory(server)  # noqa: E731


class TestRedisLedger(OnRedis, LedgerLaws):
    make = lambda server, clock: RedisLedger(server)  # noqa: E731


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
