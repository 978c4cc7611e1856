"""The queue on SQLite, after many collections and tenants were used once: the cost of a claim and of a look,
counted."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.errors import Overloaded
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import Ageing, NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

KIND = Kind("f", 2)
MANY = 2000
CLOSED = Closed("f", tenant="closed")


class Place:
    """An open queue in a file, and how much its writer and its reader do."""

    def __init__(self, path: Path) -> None:
        self.file = SqliteFile(path, SCHEMA, name="queue", synchronous="NORMAL")
        self.clock = ManualClock()
        self.queue = SqliteQueue(self.file, StoresConfig(max_waiting=3 * MANY), self.clock)
        self.done = 0

    async def open(self) -> None:
        await self.file.open()
        await self.queue.open()

    async def submit(self, *kinds: Kind, due: float = 0.0) -> list[str]:
        found = await self.queue.submit([NewItem(kind, b"", due=due) for kind in kinds])
        return [each.id for each in found]

    async def claim(self, **changes: Any) -> int:
        """Claims and settles all that it may. Returns how many."""
        cells = {Cell(name, 2): 1 << 20 for name in ("f", "g")}
        leased = await self.queue.lease(Demand(cells, frozenset({CLOSED}), 1 << 20, 1 << 30), 30.0, 0)
        if leased is None:
            return 0
        others = [Settle(id, leased.fence, **changes) for id in leased.ids] if changes else []
        await self.queue.settle(leased.fence, [] if changes else leased.ids, others)
        return len(leased.ids)

    async def use_once(self) -> None:
        """Submits and settles items of many collections and tenants; nothing of them waits in the end."""
        await self.submit(*(Kind("f", 2, f"c{n}", f"t{n}") for n in range(MANY)))
        await self.submit(*(Kind("f", 2, "", f"t{n}") for n in range(MANY)))
        while await self.claim():
            pass

    async def cost(self, step: Callable[[], Awaitable[Any]]) -> int:
        """Steps of SQLite's machine and calls of Python in the writer, and of the machine in the reader."""
        self.done = 0

        def count(*_: Any) -> None:
            self.done += 1

        def watch(connection: sqlite3.Connection, on: bool = True) -> None:
            connection.set_progress_handler(count if on else None, 1)

        def profile(connection: sqlite3.Connection, on: bool = True) -> None:
            watch(connection, on)
            sys.setprofile(count if on else None)

        await self.file.write(profile)
        await self.file.read(watch)
        try:
            await step()
        finally:
            await self.file.write(lambda connection: profile(connection, False))
            await self.file.read(lambda connection: watch(connection, False))
        return self.done


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path / "queue.db")
    await place.open()
    yield place
    await place.file.close()


async def test_a_claim_and_every_look_do_no_more_than_in_a_fresh_file(place: Place) -> None:
    async def one() -> None:
        await place.submit(KIND)
        assert await place.claim() == 1

    async def retried() -> None:
        [id] = await place.submit(KIND)
        assert await place.claim(state=State.RETRIABLE_FAILURE, attempts=1) == 1
        assert await place.queue.ageing() == [Ageing("f", 2, 0.0, 1)]
        assert await place.queue.due(10) == {"f": 1}
        assert await place.queue.cancel([id]) == ["cancelled"]
        assert await place.claim() == 0

    # Given what both take in a fresh file
    for step in (one, retried):
        await step()
    before = [await place.cost(step) for step in (one, retried)]
    # When many were used once
    await place.use_once()
    assert place.queue._memory.tenant_turns.bounds == {} == place.queue._memory.tenant_turns.lanes
    # Then they take as much, also when the file was opened again
    after = [await place.cost(step) for step in (one, retried)]
    await place.queue.open()
    again = [await place.cost(step) for step in (one, retried)]
    for first, then, opened in zip(before, after, again, strict=True):
        assert max(then, opened) <= 1.1 * first + 100, (before, after, again)


async def test_kinds_that_were_rolled_back_are_forgotten_and_no_others(place: Place) -> None:
    await place.use_once()
    known = dict(place.queue._memory.kinds.kinds)

    # Given a write that adds kinds and fails afterwards
    def write(connection: sqlite3.Connection) -> None:
        for number in range(3):
            place.queue._memory.kinds.number(connection, Kind("new", 2, f"c{number}", "t"))
        raise Overloaded("planted", 1.0)

    # When it is undone, Then its kinds are forgotten, and their lanes
    with pytest.raises(Overloaded):
        await place.file.write(write)
    kinds = place.queue._memory.kinds
    assert (kinds.kinds, len(kinds.lanes)) == (known, len(kinds.lane_numbers))
    assert {*kinds.lane_of.values()} == {*kinds.lanes} == {*kinds.cells}
    # And they get numbers when they come
    [id] = await place.submit(Kind("new", 2, "c2", "t"))
    [status] = await place.queue.status([id])
    assert status is not None and status.kind == Kind("new", 2, "c2", "t")


async def test_a_lane_of_which_only_closed_items_are_left_is_visited_when_they_are_open(place: Place) -> None:
    # Given a lane of which the open items were taken
    await place.submit(KIND, KIND._replace(tenant="closed"))
    assert await place.claim() == 1
    assert await place.claim() == 0
    # When its tenant is opened, Then the others are found
    leased = await place.queue.lease(Demand({Cell("f", 2): 9}, frozenset(), 9), 30.0, 0)
    assert leased is not None and [kind.tenant for kind in leased.kinds] == ["closed"]
