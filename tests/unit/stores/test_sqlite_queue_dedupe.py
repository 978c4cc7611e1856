"""Large calls in the queue on SQLite: a row for all their tokens, and the rows of many plain items."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.admission import SUBMISSION_PREFIX
from tailrace.stores.queue.queue import NewItem, Submitted
from tailrace.stores.queue.sqlite.dedupe import LEAST
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.queue.sqlite.submit import FRESH_ITEMS
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

KIND, OTHER = Kind("f", 2), Kind("f", 2, "c", "t")
COUNT = 80


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    await file.open()
    yield file
    await file.close()


async def opened(file: SqliteFile, clock: ManualClock, **bounds: object) -> SqliteQueue:
    queue = SqliteQueue(file, StoresConfig.model_validate(bounds), clock)
    await queue.open()
    return queue


def call(count: int = COUNT, stem: str = "a" * 26, first: int = 0, **more: object) -> list[NewItem]:
    return [
        NewItem(KIND, b"", dedupe_key=f"{SUBMISSION_PREFIX}{stem}{number:06x}", **more)  # type: ignore[arg-type]
        for number in range(first, first + count)
    ]


async def rows(file: SqliteFile, *tables: str) -> list[int]:
    return [
        await file.read(lambda c, table=table: int(c.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))  # type: ignore[misc]
        for table in tables
    ]


async def run(queue: SqliteQueue, most: int) -> list[str]:
    leased = await queue.lease(Demand({Cell("f", 2): most}, frozenset(), most, 1 << 24), 30, 0)
    assert leased is not None
    assert await queue.settle(leased.fence, leased.ids, []) == []
    return leased.ids


async def test_the_tokens_of_a_call_are_one_row(file: SqliteFile) -> None:
    queue = await opened(file, ManualClock())
    # Given calls of several sizes, one whose count goes on from the one before
    await queue.submit(call())
    await queue.submit(call(first=COUNT))
    assert await rows(file, "runs", "dedupe") == [2, 0]

    # When there are few, or a key is of the user's, or what rises has a hole, then each has its own
    await queue.submit(call(LEAST - 1, "b" * 26))
    assert await rows(file, "runs", "dedupe") == [2, LEAST - 1]
    await queue.submit([NewItem(KIND, b"", dedupe_key=f"k{number:06x}") for number in range(COUNT)])
    await queue.submit([*call(COUNT, "c" * 26), *call(1, "c" * 26, COUNT + 1)])
    assert await rows(file, "runs", "dedupe") == [2, LEAST - 1 + COUNT + COUNT + 1]


async def test_a_longer_key_that_lies_between_is_another(file: SqliteFile) -> None:
    queue = await opened(file, ManualClock())
    await queue.submit(call())
    # Given keys of other lengths, and one that is no count, which lie between the first and the last of a call
    near = [f"{SUBMISSION_PREFIX}{'a' * 26}{end}" for end in ("000001a", "00001", "00000g")]

    # When they come, then they are new
    answers = await queue.submit([NewItem(KIND, b"", dedupe_key=key) for key in near])
    assert not any(each.duplicate for each in answers)


async def test_a_call_is_known_until_its_last_item_is_forgotten(file: SqliteFile) -> None:
    clock = ManualClock()
    queue = await opened(file, clock, retention=100)
    stored = await queue.submit(call())
    # Given that half of it ran long ago, and is forgotten
    done = await run(queue, COUNT // 2)
    clock.advance(110)
    assert await queue.sweep() == COUNT // 2
    assert await queue.status([done[0]]) == [None]

    # When the call comes once more, then nothing of it is stored
    assert await queue.submit(call()) == [Submitted(each.id, True) for each in stored]
    assert await rows(file, "runs", "tasks") == [1, COUNT // 2]

    # And when the rest is forgotten, nothing is left of it
    await run(queue, COUNT)
    clock.advance(110)
    assert await queue.sweep() == COUNT // 2
    assert await rows(file, "runs", "tasks", "dedupe") == [0, 0, 0]


async def test_many_plain_items_are_stored_as_few_are(file: SqliteFile) -> None:
    queue = await opened(file, ManualClock())
    # Given the same items of two kinds, a few at a time and all at once
    items = [NewItem(KIND if number % 3 else OTHER, b"x" * number) for number in range(FRESH_ITEMS + 8)]
    for item in items:
        await queue.submit([item])
    stored = await queue.submit(items)

    # When the rows are read, then but for their ids and times they are the same, in the order in which they came
    columns = "lane, kind, state, next_trigger IS NULL, fence, attempts, crashes, throttles, flags, size, ended"
    tasks = await file.read(lambda c: c.execute(f"SELECT {columns} FROM tasks ORDER BY id").fetchall())
    assert tasks[: len(items)] == tasks[len(items) :]
    texts = await file.read(
        lambda c: c.execute(
            "SELECT payload, key, headers, expires_at, reason, progress FROM entities ORDER BY id"
        ).fetchall()
    )
    assert texts[: len(items)] == texts[len(items) :]
    assert [each.id for each in stored] == sorted(each.id for each in stored)
    assert (await queue.counts())["new"] == 2 * len(items)
    # And they are handed out
    ran = list[str]()
    while len(ran) < 2 * len(items):
        ran += await run(queue, 1000)
    assert {*ran} == {each[0] for each in await file.read(lambda c: c.execute("SELECT printf('%016x', id) FROM tasks"))}
