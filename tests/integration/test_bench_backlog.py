"""What the scenario `backlog` puts into a queue beside submissions: each twin is an item like any other, which is
claimed in its turn, oldest first, and settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.bench.backlogs import postgres, redis
from tailrace.bench.open_queue import opened
from tailrace.bench.workload import PAYLOAD, items
from tailrace.sdk.model.demand import Cell, Demand
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.ids import created_at

ADD = {"postgres": postgres.add_twins, "redis": redis.add_twins}


@pytest.fixture
def options(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """What `queue` in stores.yaml says for an engine."""

    def of(engine: str) -> dict[str, Any]:
        apart = {"postgres": "schema", "redis": "prefix"}[engine]
        where = request.getfixturevalue(f"{engine}_server")
        name = request.getfixturevalue("postgres_schema") if engine == "postgres" else "bench-backlog"
        return {"engine": engine, "url": where, apart: name}

    return of


@pytest.mark.parametrize("engine", list(ADD))
async def test_twins_are_claimed_in_their_turn_and_settled(
    engine: str, options: Callable[[str], dict[str, Any]]
) -> None:
    # Given ten items of two functions, and three twins of each
    choice = options(engine)
    config = StoresConfig.model_validate({"queue": choice, "durability": "relaxed"})
    [batch] = items(10, 2, size=10)
    async with opened(config) as queue:
        await queue.submit(batch)
    await ADD[engine](choice, 3, lambda share: None)

    # When all is claimed and settled
    async with opened(config) as queue:
        waiting = (await queue.counts())["new"]
        demand = Demand({Cell(f"noop_{number:03}", 1): 100 for number in range(2)}, total=100)
        leased = await queue.lease(demand, 60.0, 0.0)
        assert leased is not None
        refused = await queue.settle(leased.fence, leased.ids, [])
        tally = await queue.tally()

    # Then there were forty, each once, and within a function the older before the younger
    assert (waiting, len(leased.ids), len(set(leased.ids)), refused) == (40, 40, 40, [])
    assert set(leased.payloads) == {PAYLOAD}
    for function in ("noop_000", "noop_001"):
        ages = [
            created_at(int(id, 16))
            for id, kind in zip(leased.ids, leased.kinds, strict=True)
            if kind.function == function
        ]
        assert ages == sorted(ages) and len({*ages}) == 4
    # And the store's own books hold them: nothing was taken that is in no state.
    assert tally.taken == 40 and tally.states["success"] == 40
