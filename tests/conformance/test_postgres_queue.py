"""The queue on PostgreSQL obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
from servers.postgres import MadeSchemas
from servers.queues import AT_LENGTH, MODEL_ON_A_SERVER, ServedQueue

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.conformance.queue import QueueLaws
from tailrace.testing.conformance.queue_callbacks import CallbackLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws
from tailrace.testing.conformance.queue_sweeps import SweepLaws

ANY = Demand({Cell("f", 2): 1 << 20}, frozenset(), 1 << 20, 1 << 30)


class Engine(ServedQueue):
    """A queue in a database of its own."""

    def __init__(self, url: str, schema: str = MadeSchemas.NAME) -> None:
        options = PostgresQueueOptions(url=url, schema=schema, connections=2, notify=False)
        super().__init__(PostgresQueue, options, durability="relaxed")


class TestPostgresQueue(QueueLaws, CallbackLaws, RaceLaws, SearchLaws, SweepLaws):
    @pytest.fixture
    async def engine(self, made_postgres: str) -> AsyncIterator[Engine]:
        engine = Engine(made_postgres)
        await engine.open()
        yield engine
        await engine.close()


LOOKS = (
    "SELECT * FROM queue_stocked('{}')",
    "SELECT * FROM queue_tried()",
    "SELECT * FROM queue_ageing(NULL)",
    "SELECT * FROM queue_due(NULL, 10)",
)


@pytest.mark.parametrize("look", LOOKS)
async def test_a_look_visits_what_waits_and_not_what_was_used_once(
    postgres_server: str, postgres_schema: str, look: str
) -> None:
    # Given many collections that were used once, and a lane that has something
    engine = Engine(postgres_server, postgres_schema)
    await engine.open()
    await engine.queue.submit([NewItem(Kind("f", 2, f"c{n}", f"t{n}"), b"") for n in range(1000)])
    leased = await engine.queue.lease(ANY, 30.0, 0)
    assert leased is not None and len(leased.ids) == 1000
    await engine.queue.settle(leased.fence, leased.ids, [])
    await engine.queue.submit([NewItem(Kind("f", 2), b"")])
    leased = await engine.queue.lease(ANY, 30.0, 0)
    assert leased is not None
    await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.RETRIABLE_FAILURE, 0, 1)])
    await engine.close()
    async with await psycopg.AsyncConnection.connect(postgres_server) as connection:
        await connection.execute(f"SET search_path TO {postgres_schema}".encode())
        # When somebody looks
        rows = await (await connection.execute(look.encode())).fetchall()
        # Then that lane is found, by few steps
        assert len(rows) == 1
        steps = await connection.execute(
            "SELECT sum(idx_scan + seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables"
            " WHERE schemaname = current_schema()"
        )
        [(count,)] = await steps.fetchall()
        assert count < 100


class PostgresQueueModel(QueueModel):
    made: MadeSchemas

    async def make_engine(self) -> Engine:
        self.url = self.made.new()
        engine = Engine(self.url)
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()
        self.made.drop(self.url)


class TestPostgresQueueModel(PostgresQueueModel.TestCase):
    settings = MODEL_ON_A_SERVER

    @pytest.fixture(autouse=True)
    def server(self, made_schemas: MadeSchemas) -> None:
        PostgresQueueModel.made = made_schemas


@pytest.mark.long(minutes=0.5)
class TestPostgresQueueModelAtLength(TestPostgresQueueModel):
    settings = AT_LENGTH
