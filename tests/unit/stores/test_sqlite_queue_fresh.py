"""Fresh submissions are claimed without a look; where anything else may be due, the tables decide."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.queue.sqlite.submit import FRESH_BYTES, FRESH_ITEMS
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

KIND, OTHER = Kind("f", 2), Kind("g", 1)
ALL = Demand({Cell("f", 2): 1000, Cell("g", 1): 1000}, frozenset(), 1000, 1 << 24)


class Rig:
    """A queue, and the statements that its writer makes."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.file = SqliteFile(path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
        self.queue = SqliteQueue(self.file, StoresConfig(), self.clock)
        self.statements: list[str] = []

    async def open(self) -> None:
        await self.file.open()
        await self.queue.open()
        await self.submit(b"first of its kind", b"another")  # kinds get numbers
        await self.leased()
        await self.file.write(lambda connection: connection.set_trace_callback(self.statements.append))

    async def submit(self, *payloads: bytes, kind: Kind = KIND, **more: object) -> None:
        await self.queue.submit([NewItem(kind, payload, **more) for payload in payloads])  # type: ignore[arg-type]

    async def leased(self, demand: Demand = ALL) -> list[bytes]:
        leased = await self.queue.lease(demand, 30, 0)
        return [] if leased is None else list(leased.payloads)

    def reads(self) -> int:
        return sum(statement.lstrip().startswith("SELECT") for statement in self.statements)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    await rig.open()
    yield rig
    await rig.file.close()


async def test_a_lone_submission_is_claimed_without_reading(rig: Rig) -> None:
    # Given a claim that waits
    waiting = asyncio.create_task(rig.queue.lease(ALL, 30, 5))
    await rig.file.write(lambda connection: None)
    # When a workload with a dedupe key is submitted
    await rig.submit(b"it", dedupe_key="a token")
    # Then the claim has it, and nothing was read
    leased = await waiting
    assert leased is not None and list(leased.payloads) == [b"it"] and leased.attempts == [1]
    assert rig.reads() == 0


async def test_submissions_to_several_lanes_are_claimed_together_most_urgent_first(rig: Rig) -> None:
    await rig.submit(b"late")
    await rig.submit(b"urgent", kind=OTHER)
    await rig.submit(b"later")
    rig.statements.clear()
    assert await rig.leased() == [b"urgent", b"late", b"later"]
    assert await rig.leased() == []


@pytest.mark.parametrize(
    ("demand", "taken"),
    [
        (Demand({Cell("f", 2): 1}, frozenset(), 1000, 1 << 24), 1),
        (Demand({Cell("f", 2): 1000}, frozenset(), 2, 1 << 24), 2),
        (Demand({Cell("f", 2): 1000}, frozenset(), 1000, 2), 2),
        (Demand({Cell("g", 1): 1000}, frozenset(), 1000, 1 << 24), 0),
    ],
)
async def test_a_smaller_demand_leaves_the_rest_for_the_next(rig: Rig, demand: Demand, taken: int) -> None:
    await rig.submit(b"1", b"2", b"3")
    assert await rig.leased(demand) == [b"1", b"2", b"3"][:taken]
    assert await rig.leased() == [b"1", b"2", b"3"][taken:]


async def test_what_waited_before_goes_first(rig: Rig) -> None:
    # Given one that waits for a moment which then comes
    await rig.submit(b"before", due=rig.clock.wall() + 1)
    rig.clock.advance(2)
    # When another is submitted to the same lane
    await rig.submit(b"after")
    # Then both are leased in their order
    assert await rig.leased() == [b"before", b"after"]


async def test_what_expires_or_is_large_or_keyed_is_not_passed_over(rig: Rig) -> None:
    large = b"x" * (FRESH_BYTES + 1)
    await rig.submit(b"plain")
    await rig.submit(large)
    await rig.submit(b"keyed", key="k")
    await rig.submit(b"over", expires_at=rig.clock.wall() - 1)
    await rig.submit(b"plain again")
    assert await rig.leased() == [b"plain", large, b"keyed", b"plain again"]
    assert await rig.leased() == []


async def test_one_cancelled_meanwhile_is_not_claimed(rig: Rig) -> None:
    [_, gone] = await rig.queue.submit([NewItem(KIND, b"kept"), NewItem(KIND, b"gone")])
    await rig.queue.cancel([gone.id])
    assert await rig.leased() == [b"kept"]


async def test_many_submissions_are_looked_for(rig: Rig) -> None:
    payloads = [str(number).encode() for number in range(FRESH_ITEMS)]
    await rig.submit(*payloads)
    await rig.submit(b"one more")
    assert [*await rig.leased(), *await rig.leased()] == [*payloads, b"one more"]


async def test_a_transaction_that_fails_is_forgotten(rig: Rig) -> None:
    # Given a write beside the submission that fails half-way, so that both are undone and only one is made again
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO lanes (function, priority, collection) VALUES ('h', 1, '')")
        raise ValueError("no")

    results = await asyncio.gather(rig.submit(b"it"), rig.file.write(fails), return_exceptions=True)
    assert isinstance(results[1], ValueError)
    # Then the submission is claimed once
    assert await rig.leased() == [b"it"]
    assert await rig.leased() == []


async def test_duplicates_in_one_batch_and_of_earlier_ones_are_told(rig: Rig) -> None:
    [first] = await rig.queue.submit([NewItem(KIND, b"1", dedupe_key="a")])
    answers = await rig.queue.submit([NewItem(KIND, b"2", dedupe_key=key) for key in ("b", "a", "b", "c")])
    assert [each.duplicate for each in answers] == [False, True, True, False]
    assert answers[1].id == first.id and answers[2].id == answers[0].id
    assert await rig.leased() == [b"1", b"2", b"2"]
