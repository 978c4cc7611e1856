"""Each store that may be given by itself obeys the laws of fleets, on a real server."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.engines import chosen_log
from tailrace.stores.queue.engines import ENGINES as QUEUES
from tailrace.stores.state.engines import ENGINES as STATES
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.fleets import FleetLaws


class Served(FleetLaws):
    """A store on a server, whose address a class below knows."""

    choice: dict[str, Any]

    def made(self, fleet: str) -> Any:
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self, fleet: str) -> AsyncIterator[object]:
        store = self.made(fleet)
        try:
            await store.open()
            yield store
        finally:
            await store.close()


class ServedQueues(Served):
    def made(self, fleet: str) -> Any:
        return QUEUES.chosen(self.choice, StoresConfig(durability="relaxed"), ManualClock(), wait=9.0, fleet=fleet)


class ServedStates(Served):
    def made(self, fleet: str) -> Any:
        state = STATES.chosen(self.choice, StoresConfig(durability="relaxed"), ManualClock(), wait=9.0, fleet=fleet)
        assert state is not None
        return state.ground


class OnPostgres:
    @pytest.fixture(autouse=True)
    def server(self, postgres_server: str, postgres_schema: str) -> None:
        self.choice = {"engine": "postgres", "url": postgres_server, "schema": postgres_schema}


class OnRedis:
    @pytest.fixture(autouse=True)
    def server(self, redis_server: str) -> None:
        self.choice = {"engine": "redis", "url": redis_server, "prefix": f"t-{uuid.uuid4()}"}


class TestPostgresQueueFleets(OnPostgres, ServedQueues):
    pass


class TestRedisQueueFleets(OnRedis, ServedQueues):
    pass


class TestPostgresStateFleets(OnPostgres, ServedStates):
    pass


class TestRedisStateFleets(OnRedis, ServedStates):
    pass


class ServedLogs(Served):
    def made(self, fleet: str) -> Any:
        return chosen_log(self.choice, ManualClock(), fleet)


class TestRedisLogFleets(OnRedis, ServedLogs):
    pass


class OnKafka(ServedLogs):
    client = ""

    @pytest.fixture(autouse=True)
    def server(self, kafka: str) -> None:
        prefix = f"laws-{uuid.uuid4().hex[:12]}."
        self.choice = {"engine": "kafka", "bootstrap_servers": kafka, "client": self.client, "prefix": prefix}


class TestKafkaLogFleets(OnKafka):
    client = "kafka-python"


class TestKafkaLogFleetsOnConfluent(OnKafka):
    client = "confluent"


class TestDataDirectoryFleets(FleetLaws):
    """Data directories with the state in them, and with the state on a server."""

    @pytest.fixture(autouse=True, params=["sqlite", "redis"])
    def folder(self, request: pytest.FixtureRequest, tmp_path: Path, redis_server: str) -> None:
        self.data, self.engine, self.redis = tmp_path / "data", request.param, redis_server

    def opened(self, fleet: str) -> AbstractAsyncContextManager[object]:
        config = StoresConfig(durability="relaxed")
        if self.engine == "redis":  # each fleet has its own: it is the directory that they share
            there = {"engine": "redis", "url": self.redis, "prefix": f"t-{uuid.uuid4()}"}
            config = StoresConfig(durability="relaxed", state=there, delay_log=there)
        return EmbeddedStores(self.data, config, fleet=fleet)

    async def test_of_two_that_open_it_at_once_one_has_it(self) -> None:
        """The lock of the directory decides (stores/data_dir.py)."""
