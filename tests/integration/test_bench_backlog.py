"""Twins that the scenario `backlog` puts into a queue beside submissions: each twin is an item like any other, which is
claimed in its turn, oldest first, and settled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.bench.backlog import add_to_file
from tailrace.bench.backlogs import postgres, redis
from tailrace.bench.open_queue import opened
from tailrace.bench.workload import PAYLOAD, items
from tailrace.model.demand import Cell, Demand
from tailrace.model.priority import DEFAULT_PRIORITY
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.engines import OpenQueue
from tailrace.stores.queue.ids import created_at

ADD = {"postgres": postgres.add_twins, "redis": redis.add_twins}
Opening = Callable[[], AbstractAsyncContextManager[OpenQueue]]
Adding = Callable[[int], Awaitable[None]]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[Opening, Adding]]:
    """Makes an opener of an engine's queue, and a function that adds so many twins of each item while it is closed."""

    def on_a_server(engine: str) -> tuple[Opening, Adding]:
        apart = {"postgres": "schema", "redis": "prefix"}[engine]
        where = request.getfixturevalue(f"{engine}_server")
        name = request.getfixturevalue("postgres_schema") if engine == "postgres" else "bench-backlog"
        choice = {"engine": engine, "url": where, apart: name}
        config = StoresConfig.model_validate({"queue": choice, "durability": "relaxed"})
        return lambda: opened(config), lambda times: ADD[engine](choice, times, lambda share: None)

    @asynccontextmanager
    async def in_a_file() -> AsyncIterator[OpenQueue]:
        async with EmbeddedStores(tmp_path / "many") as stores:
            yield stores.queue

    def of(engine: str) -> tuple[Opening, Adding]:
        if engine != "sqlite":
            return on_a_server(engine)
        return in_a_file, lambda times: add_to_file(tmp_path, "many", times, lambda share: None)

    return of


@pytest.mark.parametrize("engine", ["sqlite", *ADD])
async def test_twins_are_claimed_in_their_turn_and_settled(
    engine: str, place: Callable[[str], tuple[Opening, Adding]]
) -> None:
    # Given ten items of two functions, and three twins of each
    opening, add_twins = place(engine)
    [batch] = items(10, 2, size=10)
    async with opening() as queue:
        await queue.submit(batch)
    await add_twins(3)

    # When all is claimed and settled
    async with opening() as queue:
        waiting = (await queue.counts())["new"]
        demand = Demand({Cell(f"noop_{number:03}", int(DEFAULT_PRIORITY)): 100 for number in range(2)}, total=100)
        leased = await queue.lease(demand, 60.0, 0.0)
        assert leased is not None
        refused = await queue.settle(leased.fence, leased.ids, [])
        tally = await queue.tally()

    # Then there were forty, each once, and of each kind the older before the younger
    assert (waiting, len(leased.ids), len(set(leased.ids)), refused) == (40, 40, 40, [])
    assert set(leased.payloads) == {PAYLOAD}
    ages: dict[Kind, list[float]] = {}
    for id, kind in zip(leased.ids, leased.kinds, strict=True):
        ages.setdefault(kind, []).append(created_at(int(id, 16)))
    assert all(each == sorted(each) and len({*each}) == 4 for each in ages.values())
    # And the store's own books hold them: nothing was taken that is in no state.
    assert tally.taken == 40 and tally.states["success"] == 40
