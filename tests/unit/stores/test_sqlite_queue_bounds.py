"""Particulars of the queue on SQLite: its bounds, its retention, its tables, and a disk that fills up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded, StoreFull
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.ids import Ids, created_at, first_id, id_number, id_text
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite import queue as engine
from tailrace.stores.queue.sqlite.claim import BESIDE_ITEMS, BESIDE_MICROS
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

KIND = Kind("f", 2)
ALL = Demand({Cell("f", 2): 1000}, frozenset(), 1000, 1 << 24)


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    await file.open()
    yield file
    await file.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def opened(file: SqliteFile, clock: ManualClock, **bounds: object) -> SqliteQueue:
    queue = SqliteQueue(file, StoresConfig.model_validate(bounds), clock)
    await queue.open()
    return queue


async def submit(queue: SqliteQueue, count: int, **more: object) -> list[str]:
    return [each.id for each in await queue.submit([NewItem(KIND, b"", **more) for _ in range(count)])]  # type: ignore[arg-type]


async def finish(queue: SqliteQueue) -> list[str]:
    leased = await queue.lease(ALL, 30, 0)
    assert leased is not None
    assert await queue.settle(leased.fence, leased.ids, []) == []
    return leased.ids


async def rows(file: SqliteFile, table: str) -> int:
    return await file.read(lambda connection: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))


async def test_beyond_its_bound_the_queue_refuses_and_says_when_to_come_back(
    file: SqliteFile, clock: ManualClock
) -> None:
    queue = await opened(file, clock, max_waiting=5)
    await submit(queue, 4)
    with pytest.raises(Overloaded, match="holds 4 workloads and takes at most 5") as refused:
        await submit(queue, 2)
    assert refused.value.retry_after > 0
    # Items that ended make room.
    await finish(queue)
    await submit(queue, 5)


async def test_a_queue_that_was_not_opened_says_so(file: SqliteFile) -> None:
    with pytest.raises(NotConnected, match="not open"):
        await SqliteQueue(file).submit([NewItem(KIND, b"")])


async def test_a_lease_of_no_time_is_refused(file: SqliteFile, clock: ManualClock) -> None:
    queue = await opened(file, clock)
    with pytest.raises(InvalidRequest, match="lease of 0 seconds"):
        await queue.lease(ALL, 0, 0)


async def test_ended_items_are_forgotten_after_the_retention_and_live_ones_never(
    file: SqliteFile, clock: ManualClock
) -> None:
    queue = await opened(file, clock, retention=100)
    waiting = await submit(queue, 3, due=clock.wall() + 1e6)
    old = await submit(queue, 3, dedupe_key="")
    [deduped] = await submit(queue, 1, dedupe_key="k")
    await finish(queue)
    clock.advance(60)
    young = await submit(queue, 2)
    await finish(queue)
    assert await queue.sweep() == 0
    clock.advance(50)
    assert await queue.sweep() == 4
    assert await queue.sweep() == 0
    assert await queue.status([*old, deduped]) == [None] * 4
    assert all(await queue.status([*waiting, *young]))
    assert (await queue.counts())["success"] == 2
    assert await rows(file, "dedupe") == 0
    [again] = await queue.submit([NewItem(KIND, b"", dedupe_key="k")])
    assert not again.duplicate


async def test_more_ended_items_than_are_kept_are_forgotten_a_few_at_a_time(
    file: SqliteFile, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SWEEP", 4)
    monkeypatch.setattr(engine, "SWEEP_LOOK", 6)
    queue = await opened(file, clock, keep_ended=5)
    waiting = await submit(queue, 8, due=clock.wall() + 1e6)
    ended = await submit(queue, 20)
    await finish(queue)
    swept = []
    while found := await queue.sweep():
        swept.append(found)
    assert sum(swept) == 15
    assert max(swept) <= 4
    assert sum(status is not None for status in await queue.status(ended)) == 5
    assert all(await queue.status(waiting))


async def test_a_success_leaves_no_payload_and_no_claim_behind(file: SqliteFile, clock: ManualClock) -> None:
    queue = await opened(file, clock)
    await queue.submit([NewItem(KIND, b"x" * 1000, key="k")])
    await finish(queue)
    assert [await rows(file, table) for table in ("tasks", "entities", "claims", "keyed")] == [1, 0, 0, 0]


async def test_a_dead_item_keeps_its_reason_and_not_its_payload(file: SqliteFile, clock: ManualClock) -> None:
    queue = await opened(file, clock)
    await queue.submit([NewItem(KIND, b"x" * 1000)])
    leased = await queue.lease(ALL, 30, 0)
    assert leased is not None
    await queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="r" * 9999)])
    kept = await file.read(lambda c: c.execute("SELECT length(payload), length(reason) FROM entities").fetchall())
    assert kept == [(0, 4096)]


async def test_the_tables_refuse_what_the_lifecycle_forbids(file: SqliteFile, clock: ManualClock) -> None:
    queue = await opened(file, clock)
    await submit(queue, 1)
    for change in ("state = 7", "state = 15", "state = 10", "next_trigger = NULL", "ended = 1", "state = 'new'"):
        with pytest.raises(sqlite3.IntegrityError):
            await file.write(lambda connection, change=change: connection.execute(f"UPDATE tasks SET {change}"))  # type: ignore[misc]
    assert (await queue.counts())["new"] == 1


async def test_a_full_disk_keeps_nothing_and_the_queue_goes_on_when_there_is_room(
    file: SqliteFile, clock: ManualClock
) -> None:
    queue = await opened(file, clock)
    await submit(queue, 3)
    leased = await queue.lease(ALL, 30, 0)
    assert leased is not None
    before = await queue.counts()

    async def pages(most: int) -> None:
        await file.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {most}").fetchone())

    # Given a file that may not grow
    await pages(1)
    # When a batch of a kind never seen before does not fit
    with pytest.raises(StoreFull, match="Free some space"):
        await queue.submit([NewItem(Kind("new", 1, "c", "t"), b"x" * 100_000, dedupe_key=str(i)) for i in range(10)])
    # Then nothing of it is there, in the tables or in memory
    assert await queue.counts() == before
    assert [await rows(file, table) for table in ("tasks", "lanes", "dedupe")] == [3, 1, 0]
    # And what was out can be settled, and with room the same batch is taken
    await pages(1 << 30)
    assert await queue.settle(leased.fence, leased.ids, []) == []
    answers = await queue.submit([NewItem(Kind("new", 1, "c", "t"), b"x", dedupe_key=str(i)) for i in range(10)])
    assert not any(answer.duplicate for answer in answers)
    found = await queue.lease(Demand({Cell("new", 1): 100}, frozenset(), 100), 30, 0)
    assert found is not None
    assert len(found.ids) == 10


async def test_many_items_behind_a_gate_are_looked_at_once(file: SqliteFile, clock: ManualClock) -> None:
    # Given many items of a closed tenant at the head of a lane
    queue = await opened(file, clock)
    await queue.submit([NewItem(Kind("f", 2, "", "shut"), b"") for _ in range(2000)])
    demand = Demand(ALL.cells, frozenset({Closed("f", "", "shut")}), 1000)
    assert await queue.lease(demand, 30, 0) is None
    # When it is asked again, and again after an item of another tenant came
    looks: list[str] = []
    await file.write(lambda connection: connection.set_trace_callback(looks.append))
    assert await queue.lease(demand, 30, 0) is None
    await queue.submit([NewItem(KIND, b"open")])
    leased = await queue.lease(demand, 30, 0)
    await file.write(lambda connection: connection.set_trace_callback(None))
    # Then the first look asks nothing, and the second finds the item without passing the closed ones
    assert leased is not None
    assert leased.payloads == [b"open"]
    picks = [look for look in looks if "json_array(t.id, t.kind" in look]
    assert len(picks) == 1
    _, passed, _ = json.loads(picks[0].split("json_each('[")[1].split("]")[0] + "]")
    assert passed >= int(clock.wall() * 1e6)


def test_ids_rise_through_clocks_that_jump_back_and_tell_when_they_were_made() -> None:
    ids = Ids(0)
    taken = [number for now in (1_700_000_000_000, 1_600_000_000_000, 1_700_000_000_500) for number in ids.take(3, now)]
    assert taken == sorted(set(taken))
    assert max(taken) < 1 << 63
    assert created_at(taken[0]) == pytest.approx(1_700_000_000.0, abs=0.002)
    assert first_id(1_700_000_000_000) <= taken[0] < first_id(1_700_000_000_002)


@pytest.mark.parametrize(
    "text", ["", "zz", "0" * 15, "0" * 17, "g" * 16, "f" * 16, "-000000000000001", "+00000000000000a"]
)
def test_a_text_that_is_no_id_is_no_number(text: str) -> None:
    assert id_number(text) == -1


def test_an_id_is_sixteen_digits() -> None:
    assert id_number(id_text(12345)) == 12345


async def test_a_claim_is_short_while_somebody_submits(file: SqliteFile, clock: ManualClock) -> None:
    # Given many items, and somebody who submitted just now
    queue = await opened(file, clock)
    await submit(queue, 2 * BESIDE_ITEMS)
    many = Demand({Cell("f", 2): 9999}, frozenset(), 9999)

    # When they are claimed, then few at a time: the next submission waits for the claim beside it
    leased = await queue.lease(many, 30.0, 1.0)
    assert leased is not None
    assert len(leased.ids) == BESIDE_ITEMS

    # And as many as there are once nobody submits any more
    await submit(queue, 1)
    clock.advance(BESIDE_MICROS / 1e6)
    leased = await queue.lease(many, 30.0, 1.0)
    assert leased is not None
    assert len(leased.ids) == BESIDE_ITEMS + 1


async def test_a_wall_clock_that_jumps_ends_no_lease_before_its_time(file: SqliteFile, clock: ManualClock) -> None:
    # Given an item that is out for half a minute
    queue = await opened(file, clock)
    await queue.submit([NewItem(KIND, b"one")])
    leased = await queue.lease(ALL, 30.0, 0.0)
    assert leased is not None
    # When the wall clock jumps far ahead, and then far back
    clock.jump(3600.0)
    assert await queue.lease(ALL, 30.0, 0.0) is None
    clock.advance(20.0)
    clock.jump(-7200.0)
    assert await queue.lease(ALL, 30.0, 0.0) is None
    # Then its lease ends in its time, and not later
    clock.advance(9.0)
    assert await queue.lease(ALL, 30.0, 0.0) is None
    clock.advance(2.0)
    again = await queue.lease(ALL, 30.0, 0.0)
    assert again is not None
    assert again.fence > leased.fence
