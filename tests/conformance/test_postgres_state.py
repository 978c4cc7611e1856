"""Every kind of the state on PostgreSQL obeys its kind's laws, and agrees with its model, on a real server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, ClassVar, Self

import psycopg
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.stores.config import StoresConfig
from tailrace.stores.postgres.migrations import migrate
from tailrace.stores.postgres.migrations.migrate import bring_up
from tailrace.stores.postgres.server import PostgresOptions
from tailrace.stores.state.postgres import PostgresGround, stores_on
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance import (
    checkpoints,
    control,
    dead_letters,
    drops,
    inventory,
    ownership,
    results,
    segments,
    usage,
)
from tailrace.testing.conformance.bench import MODEL, StoreLaws
from tailrace.testing.conformance.checkpoints import CheckpointLaws
from tailrace.testing.conformance.control import ControlLaws
from tailrace.testing.conformance.dead_letters import DeadLetterLaws
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

CONFIG = StoresConfig(
    durability="relaxed", result_retention=RETENTION, result_bytes=MAX_BYTES, max_dead_letters=dead_letters.BOUND
)
#: Makes a schema as new, where the schema itself lets nobody.
MAKE_NEW = """
CREATE FUNCTION S.make_new() RETURNS void LANGUAGE plpgsql SET session_replication_role TO replica AS $$
DECLARE
    one text;
BEGIN
    FOR one IN SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'S' AND c.relkind = 'r' AND c.relname NOT IN
            ('migrations', 'state_home', 'slots', 'filling', 'no_crash_since')
    LOOP
        EXECUTE format('DELETE FROM S.%I', one);
    END LOOP;
    INSERT INTO S.control_version (version) VALUES (1);
    INSERT INTO S.schedule_runs_end (position) VALUES (0);
    INSERT INTO S.results_size SELECT n, 0 FROM generate_series(0, 15) AS n;
END $$
"""


class Bench:
    """One store of a state that nobody else uses meanwhile."""

    def __init__(self, ground: PostgresGround, kind: str) -> None:
        self.clock = ManualClock()
        self._ground = ground
        self._kind = kind
        self._open()

    @property
    def engine(self) -> Any:
        return getattr(self._state, self._kind)

    def _open(self) -> None:
        self._state = stores_on(self._ground, CONFIG, self.clock, lambda: round(self.clock.wall() * 1e6))

    async def reopen(self) -> None:
        """Begins anew with the state; the server goes on."""
        self._open()

    async def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return await self._ground.schema.read(statement, (), "a test")

    async def empty(self) -> Self:
        await self.ask("SELECT S.make_new()")
        return self


class OnPostgres(StoreLaws[Any]):
    """The laws of a kind over connections that all tests here share, since dialling costs more than most of them."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str, **drawn: Any) -> None:
        """Has the kind's model draw `drawn`; four stories of it are told here."""
        cls.kind = kind
        for name in dir(cls):
            if hasattr(model := getattr(cls, name), "hypothesis"):
                setattr(cls, name, settings(MODEL, max_examples=4)(given(**drawn)(model.hypothesis.inner_test)))

    @pytest.fixture(autouse=True)
    def _server(self, models: tuple[asyncio.Runner, PostgresGround]) -> None:
        self.runner, self.ground_of_models = models

    @pytest_asyncio.fixture(loop_scope="module")
    async def store(self, ground: PostgresGround) -> Bench:  # type: ignore[override]
        return await Bench(ground, self.kind).empty()

    def with_store(self, story: Callable[[Any], Awaitable[Any]]) -> None:
        async def run() -> None:
            await story(await Bench(self.ground_of_models, self.kind).empty())

        self.runner.run(run())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(postgres_server: str, schema: str) -> AsyncIterator[PostgresGround]:
    ground = a_ground(postgres_server, schema)
    await ground.open()
    yield ground
    await ground.close()


@pytest.fixture(scope="module")
def models(postgres_server: str, schema: str) -> Iterator[tuple[asyncio.Runner, PostgresGround]]:
    """A runner and a ground on which models are told, one story after the other."""
    with asyncio.Runner() as runner:
        ground = a_ground(postgres_server, schema)
        runner.run(ground.open())
        yield runner, ground
        runner.run(ground.close())


def a_ground(url: str, schema: str) -> PostgresGround:
    options = PostgresOptions(url=url, schema=schema, connections=3, notify=False)
    return PostgresGround(options, CONFIG, ManualClock(), 40.0)


@pytest.fixture(scope="module")
def schema(postgres_server: str) -> Iterator[str]:
    """A schema that all tests here share: making one costs more than most of them."""
    name = f"t_{uuid.uuid4().hex}"
    asyncio.run(bring_up(PostgresOptions(url=postgres_server, schema=name), plan=False))
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(MAKE_NEW.replace("S.", f"{name}.").replace("'S'", f"'{name}'").encode())
        yield name
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:.*is marked with '@pytest.mark.asyncio' but"),  # the models run by themselves
]


class TestPostgresCheckpoints(OnPostgres, CheckpointLaws, kind="checkpoints", steps=checkpoints.steps):
    pass


class TestPostgresControl(OnPostgres, ControlLaws, kind="control", steps=st.lists(control.changes, max_size=15)):
    pass


class TestPostgresDeadLetters(OnPostgres, DeadLetterLaws, kind="dead_letters", steps=dead_letters.steps):
    pass


class TestPostgresDrops(OnPostgres, DropLaws, kind="drops", steps=drops.steps):
    pass


class TestPostgresInventory(OnPostgres, InventoryLaws, kind="inventory", steps=inventory.steps):
    pass


class TestPostgresLedger(OnPostgres, LedgerLaws, kind="ledger", data=st.data()):
    pass


class MovingBench(Bench):
    """A state over connections of its own, which are dialled anew to the place where it is then."""

    @property
    def engine(self) -> Any:
        return self._state

    async def move(self) -> None:
        await self.ask("UPDATE S.state_home SET home = 'a server that is gone'")
        await self._ground.close()
        await self._ground.open()

    async def wait_out(self) -> None:
        await self.ask("UPDATE S.state_home SET quiet_until = 0")


class TestPostgresMoved(OnPostgres, MovedLaws, kind="ground"):
    @pytest_asyncio.fixture(loop_scope="module")
    async def store(self, postgres_server: str, schema: str) -> AsyncIterator[MovingBench]:  # type: ignore[override]
        ground = a_ground(postgres_server, schema)
        await ground.open()
        bench = MovingBench(ground, "ground")
        yield await bench.empty()
        await bench.wait_out()
        await ground.close()


class TestPostgresOwnership(OnPostgres, OwnershipLaws, kind="ownership", steps=ownership.steps):
    pass


class TestPostgresReplays(OnPostgres, ReplayLaws, kind="replays"):
    pass


class TestPostgresResults(OnPostgres, ResultLaws, kind="results", steps=results.steps):
    async def test_what_is_past_its_time_leaves_and_is_not_counted_any_more(self, store: Bench) -> None:
        await store.engine.put({f"old{number}": b"1234" for number in range(10)})
        store.clock.advance(RETENTION + 1)
        await store.engine.put({"new": b"56"})
        assert await store.engine.sweep() == 10
        assert await store.engine.sweep() == 0
        counted = "SELECT (SELECT count(*) FROM S.results), (SELECT sum(bytes)::int FROM S.results_size)"
        assert await store.ask(counted) == [(1, 2)]


class TestPostgresSchedules(OnPostgres, ScheduleLaws, kind="schedules"):
    pass


class TestPostgresSegments(OnPostgres, SegmentLaws, kind="segments", steps=segments.steps):
    pass


class TestPostgresUsage(OnPostgres, UsageLaws, kind="usage", story=usage.stories):
    pass


async def test_letters_that_are_there_are_counted_when_their_rooms_are_made(
    postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a schema of the version before, with letters
    every = migrate.steps()
    first = next(index for index, step in enumerate(every) if "rooms_of_dead_letters" in step.name)
    options = PostgresOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: every[:first])
        await bring_up(options, plan=False)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        texts, numbers = "ARRAY['', '']", "ARRAY[1, 1]"
        kinds = f"ARRAY['f', 'f'], {numbers}, {', '.join([texts] * 4)}, {', '.join([numbers] * 4)}"
        rest = f"{texts}, {texts}, {texts}, {texts}, {numbers}, {texts}, ARRAY[''::bytea, '']"
        connection.execute(
            f"SELECT {postgres_schema}.dead_letters_add(ARRAY['a', 'b'], {texts}, {kinds}, {rest})".encode()
        )
        # When the steps are taken
        await bring_up(options, plan=False)
        # Then its rooms have them
        rooms = f"SELECT function, items FROM {postgres_schema}.dead_letter_rooms".encode()
        assert connection.execute(rooms).fetchall() == [("f", 2)]
