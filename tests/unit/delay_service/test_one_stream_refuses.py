"""A rung while one of the streams that it moves into refuses: the others are given theirs once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Rung
from tailrace.delay_service.queue_mover import QueueMover, waiting
from tailrace.delay_service.records import record_of
from tailrace.delay_service.service import DelayService
from tailrace.model.errors import StoreFull
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.stores.log import sqlite as log_sqlite
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SqliteLog
from tailrace.stores.queue.sqlite import queue as queue_sqlite
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

CONFIG = DelayConfig(rungs=(1.0,), max_delay=60.0)


class OneByOne:
    """A log that appends to each stream by itself, as Kafka does, and of which one stream refuses."""

    batches = True

    def __init__(self, inner: SqliteLog, refuses: str) -> None:
        self._inner, self.refuses, self.asked = inner, refuses, 0
        self.read = inner.read

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        if stream == self.refuses:
            self.asked += 1
            raise StoreFull("no leader")
        return await self._inner.append(stream, partition, records)


async def test_it_is_tried_again_and_nothing_else_is_written_again(tmp_path: Path) -> None:
    # Given a rung with items of three functions, all of them due, and a log in which one stream refuses
    clock = ManualClock()
    file = SqliteFile(tmp_path / "log.db", log_sqlite.SCHEMA, name="log", synchronous="OFF")
    await file.open()
    inner = SqliteLog(file, clock)
    await inner.open()
    now = clock.wall()
    items = [Parked("t", f"{name}{n}", Kind(name), b"", now + 1.0, now) for n in range(3) for name in "abc"]
    await DelayService(inner, CONFIG, clock).park(items)
    log = OneByOne(inner, "due.b")
    rung = Rung("delay.1s", 1.0, 0, log, CONFIG, CONFIG.ladder(), clock)  # type: ignore[arg-type]
    clock.advance(2.0)
    # When it is tried again and again, and more comes meanwhile
    for turn in range(4):
        with pytest.raises(StoreFull):
            await rung.move()
        if turn == 1:
            late = [Parked("t", f"{name}3", Kind(name), b"", clock.wall() + 1.0, clock.wall()) for name in "abc"]
            await DelayService(inner, CONFIG, clock).park(late)
            clock.advance(2.0)
    assert log.asked == 4
    # Then the others have theirs once; and when it takes them, nothing is left
    log.refuses = ""
    position, _ = await rung.move()
    assert position == (await inner.bounds("delay.1s"))[0].end
    assert [(await inner.bounds(f"due.{name}"))[0].end for name in "abc"] == [4, 4, 4]
    await file.close()


@pytest.mark.parametrize("refuses", ["delay.1s", "due.f"])
async def test_an_item_that_goes_elsewhere_by_then_is_neither_lost_nor_written_again(
    tmp_path: Path, refuses: str
) -> None:
    # Given a rung with an item that is due and one that has 0.6 s left, so that it goes to the next rung
    clock, config = ManualClock(), DelayConfig(rungs=(1.0, 5.0), max_delay=60.0)
    file = SqliteFile(tmp_path / "log.db", log_sqlite.SCHEMA, name="log", synchronous="OFF")
    await file.open()
    inner = SqliteLog(file, clock)
    await inner.open()
    now = clock.wall()
    items = [Parked("t", id, Kind("f"), id.encode(), now + due, now) for id, due in (("x", 5.0), ("y", 5.6))]
    await DelayService(inner, config, clock).park(items)
    log = OneByOne(inner, refuses)
    rung = Rung("delay.5s", 5.0, 0, log, config, config.ladder(), clock)  # type: ignore[arg-type]
    clock.advance(5.0)
    # When one of the two streams refuses, and the second item has become due by the next try
    with pytest.raises(StoreFull):
        await rung.move()
    clock.advance(1.0)
    log.refuses = ""
    position, _ = await rung.move()
    # Then each of them is further on, and once
    assert position == (await inner.bounds("delay.5s"))[0].end == 2
    further = [await inner.read(stream, 0, 0, 10, 1000) for stream in ("due.f", "delay.1s")]
    assert sorted(payload for each in further for payload in each.payloads) == [b"x", b"y"]
    await file.close()


async def test_of_a_queue_only_the_items_of_that_stream_go_back(tmp_path: Path) -> None:
    # Given items of three functions that wait in a queue and are due, and a log in which one stream refuses
    clock = ManualClock()
    files = [SqliteFile(tmp_path / "log.db", log_sqlite.SCHEMA, name="log", synchronous="OFF")]
    files.append(SqliteFile(tmp_path / "queue.db", queue_sqlite.SCHEMA, name="queue", synchronous="OFF"))
    for file in files:
        await file.open()
    inner, queue = SqliteLog(files[0], clock), queue_sqlite.SqliteQueue(files[1], clock=clock)
    await inner.open()
    await queue.open()
    now = clock.wall()
    parked = [Parked("t", f"{name}{n}", Kind(name), b"", now + 1.0, now) for n in range(3) for name in "abc"]
    await queue.submit([waiting(record_of(each, each.due)) for each in parked])
    clock.advance(2.0)
    log = OneByOne(inner, "due.b")
    mover = QueueMover(queue, log, CONFIG, clock)  # type: ignore[arg-type]
    # When it is tried again and again, then the others have theirs once
    for _ in range(3):
        with pytest.raises(StoreFull):
            await mover.step(0)
        clock.advance(10.0)
    assert (await queue.counts())["new"] == 3
    log.refuses = ""
    assert await mover.step(0) == 3
    assert [(await inner.bounds(f"due.{name}"))[0].end for name in "abc"] == [3, 3, 3]
    await queue.close()
    for file in files:
        await file.close()
