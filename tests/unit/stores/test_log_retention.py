"""The retention of a log: what a known tailer has not settled stays, and a log that is full of it takes no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.model.errors import Overloaded
from tailrace.stores.log.log import Bounds, Record
from tailrace.stores.log.readers import KnownTailer
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.log.sqlite_retention import OldBatch, goes, who_holds
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

#: Batches of 10 records and 100 bytes, a second apart, of one partition of two streams.
BATCHES = [((name, 0), OldBatch(1, 0, 10 * n, float(n), 100)) for name in ("a", "b") for n in range(1, 6)]
MB = 1 << 20


def test_what_is_old_goes_up_to_what_a_known_tailer_needs() -> None:
    readers = [KnownTailer("slow", "a", {0: 15}), KnownTailer("quick", "a", {0: 50})]
    assert goes(BATCHES, readers, 4.0, 0) == {("a", 0): 15, ("b", 0): 30}


def test_a_partition_of_which_a_known_tailer_has_no_checkpoint_is_needed_whole() -> None:
    assert goes(BATCHES, [KnownTailer("new", "a", {}), KnownTailer("other", "b", {1: 7})], 9.0, 1e9) == {}


def test_the_oldest_of_all_partitions_go_first_where_bytes_are_to_be_freed() -> None:
    assert goes(BATCHES, [], 0.0, 250) == {("a", 0): 20, ("b", 0): 10}
    assert goes(BATCHES, [KnownTailer("slow", "a", {0: 0})], 0.0, 250) == {("b", 0): 30}


def test_those_that_hold_most_are_named_first() -> None:
    readers = [KnownTailer("slow", "a", {0: 15}), KnownTailer("quick", "a", {0: 50}), KnownTailer("new", "b", {})]
    bounds = {("a", 0): Bounds(10, 50), ("b", 0): Bounds(0, 2000)}
    assert who_holds(readers, bounds) == "new (2,000 records), slow (35 records)"


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    file = SqliteFile(tmp_path / "log.db", SCHEMA, name="log")
    await file.open()
    log = SqliteLog(file, ManualClock(), retention=7 * 86_400.0, max_bytes=4 * MB)
    await log.open()
    yield log
    await file.close()


async def fill(log: SqliteLog, stream: str) -> int:
    """Appends until the log is full; returns how many records it took."""
    for taken in range(100):
        try:
            await log.append(stream, 0, [Record(bytes([taken]) * (MB // 4))])
        except Overloaded:
            return taken
    raise AssertionError("the log took 25 MB, and may have 4")


async def test_a_full_log_takes_no_more_and_names_the_tailer_that_holds_it(log: SqliteLog) -> None:
    # Given a log that is full of what a known tailer has not settled
    taken = await fill(log, "orders")
    assert 8 <= taken <= 16
    readers = [KnownTailer("orders", "orders", {})]
    assert await log.sweep(readers) == 0
    # Then nothing goes, and the refusal and the trouble name the tailer and what to do
    assert await log.bounds("orders") == {0: Bounds(0, taken)}
    with pytest.raises(
        Overloaded, match=rf"full \(4 MiB in .*log.db\).*what orders \({taken} records\) did not .*forget NAME"
    ):
        await log.append("orders", 0, [Record(b"x" * MB)])
    (trouble,) = log.troubles()
    assert f"orders ({taken} records)" in trouble.what
    assert "log_bytes" in trouble.todo
    # When the tailer goes on, then the log takes more, and the trouble is over
    assert await log.sweep([KnownTailer("orders", "orders", {0: taken})]) == 1
    assert log.troubles() == []
    await log.append("orders", 0, [Record(b"x" * (MB // 4))])


async def test_a_full_log_that_nobody_reads_makes_room_before_it_refuses(log: SqliteLog) -> None:
    taken = 0
    for number in range(60):
        await log.append("events", 0, [Record(bytes([number]) * (MB // 4))])
        while await log.sweep():
            taken += 1
    assert taken > 0
    assert (await log.bounds("events"))[0].start > 40
