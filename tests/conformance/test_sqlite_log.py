"""The embedded log obeys the laws of logs, and keeps all acknowledged records when its process is killed."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.stores.log.batch import MAX_RECORD
from tailrace.stores.log.log import (
    Bounds,
    CountingLog,
    Log,
    MemoryReadableLog,
    NotifyingLog,
    Record,
    append_to_each,
    trim_each,
)
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.log import LogLaws

_APPEND = """
import asyncio, itertools, sys
from pathlib import Path
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.sqlite.file import SqliteFile

async def main():
    file = SqliteFile(Path(sys.argv[1]), SCHEMA, name="log")
    await file.open()
    log = SqliteLog(file)
    await log.open()
    async def appending(partition):
        for number in itertools.count():
            first = await log.append("s", partition, [Record(b"%d" % number), Record(b"%d" % number)])
            print(partition, first, number, flush=True)
    await asyncio.gather(*(appending(partition) for partition in range(3)))

asyncio.run(main())
"""


class TestSqliteLog(LogLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Log]]:
        return SqliteBench[SqliteLog](folder, SCHEMA, SqliteLog, SqliteLog.open)


async def test_what_is_at_hand_is_what_is_read_and_what_is_not_must_be_read(tmp_path: Path) -> None:
    async with SqliteBench(tmp_path, SCHEMA, SqliteLog, SqliteLog.open) as bench:
        # Given three appends that are in memory, of which the first records were trimmed
        log = bench.engine
        assert isinstance(log, MemoryReadableLog) and isinstance(log, CountingLog)
        for batch in range(3):
            await log.append("s", 0, [Record(b"%d" % (2 * batch + one), "k", (("n", str(one)),)) for one in range(2)])
        await log.trim("s", 0, 2)
        # Then who reads on has them at hand, as the log reads them, also in parts and with bounds
        assert log.at_hand("s", 0, 0, 10, 1000) == await log.read("s", 0, 0, 10, 1000)
        assert log.at_hand("s", 0, 2, 3, 1000) == await log.read("s", 0, 2, 3, 1000)
        assert log.at_hand("s", 0, 5, 2, 1000) == await log.read("s", 0, 5, 2, 1000)
        assert log.at_hand("s", 0, 4, 10, 1) == await log.read("s", 0, 4, 10, 1)
        # Then past the end, and of a stream that is none, nothing is there to be read
        for stream, position in (("s", 6), ("none", 0)):
            found = log.at_hand(stream, 0, position, 10, 1000)
            assert found is not None and found.positions == []
        assert log.counts() == {"s": 4}
        # When it was opened again, what is there must be read first
        again = SqliteLog(log._file)
        await again.open()
        assert again.at_hand("s", 0, 2, 10, 1000) is None
        assert again.counts() == {"s": 4}


async def test_appends_beside_a_write_that_is_undone_leave_no_gap(tmp_path: Path) -> None:
    """The writer knows the ends of partitions without asking; records that were rolled back are not in them."""

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM batches")
        raise InvalidRequest("no")

    async with SqliteBench(tmp_path, SCHEMA, SqliteLog, SqliteLog.open) as bench:
        log = bench.engine
        # Given a stream that was appended to, and one that is new
        assert await log.append("s", 0, [Record(b"0"), Record(b"1")]) == 0
        await log.create("t", 1)
        # When appends share a group with a write that fails half-way
        answers = await asyncio.gather(
            log.append("s", 0, [Record(b"2")]),
            log._file.write(fails),
            append_to_each(log, {"s": [Record(b"3")], "t": [Record(b"0"), Record(b"1")]}),
            log.append("t", 0, [Record(b"2")]),
            return_exceptions=True,
        )
        # Then they are where they would have been without it
        assert answers[0] == 2 and isinstance(answers[1], InvalidRequest) and answers[2:] == [[None, None], 2]
        await bench.reopen()
        for stream, end in (("s", 4), ("t", 3)):
            found = await bench.engine.read(stream, 0, 0, 10, 1000)
            assert found.payloads == [b"%d" % number for number in range(end)]
            assert await bench.engine.append(stream, 0, [Record(b"")]) == end


async def test_who_is_told_hears_once_of_what_comes_and_not_when_it_took_that_back(tmp_path: Path) -> None:
    async with SqliteBench(tmp_path, SCHEMA, SqliteLog, SqliteLog.open) as bench:
        # Given a stream that somebody has read to its end, and others that have gone away
        log, heard = bench.engine, list[str]()
        assert isinstance(log, NotifyingLog)
        await log.append("s", 0, [Record(b"read")])
        log.tell("s", {0: 1}, lambda: heard.append("reader"))
        take_back = log.tell("s", {0: 1}, lambda: heard.append("gone"))
        take_back()
        # When records come, to that stream and to another
        await log.append("other", 0, [Record(b"x")])
        assert heard == []
        await log.append("s", 0, [Record(b"new")])
        await log.append("s", 0, [Record(b"newer")])
        # Then the reader heard once, and hears soon when there is something already
        assert heard == ["reader"]
        log.tell("s", {0: 2}, lambda: heard.append("late"))
        take_back = log.tell("s", {0: 2}, lambda: heard.append("gone"))
        take_back()
        assert heard == ["reader"]
        await log.bounds("s")
        await asyncio.sleep(0)
        assert heard == ["reader", "late"]


async def test_records_for_many_streams_are_one_write(tmp_path: Path) -> None:
    async with SqliteBench(tmp_path, SCHEMA, SqliteLog, SqliteLog.open) as bench:
        log, heard = bench.engine, list[str]()
        await log.append("a", 0, [Record(b"0")])
        log.tell("a", {0: 1}, lambda: heard.append("a"))
        assert await append_to_each(log, {"a": [Record(b"1"), Record(b"2")], "b": [Record(b"3")]}) == [None, None]
        assert heard == ["a"]
        assert (await log.read("a", 0, 0, 10, 1000)).payloads == [b"0", b"1", b"2"]
        assert (await log.read("b", 0, 0, 10, 1000)).payloads == [b"3"]
        # None of it is there when one record is refused
        [first, second] = await append_to_each(log, {"a": [Record(b"4")], "b": [Record(bytes(MAX_RECORD + 1))]})
        assert first is second is not None
        assert (await log.bounds("a"))[0].end == 3


async def test_many_streams_are_trimmed_in_one_write(tmp_path: Path) -> None:
    async with SqliteBench(tmp_path, SCHEMA, SqliteLog, SqliteLog.open) as bench:
        log = bench.engine
        for number in range(6):
            assert await append_to_each(log, {name: [Record(b"%d" % number)] for name in "abc"}) == [None] * 3
        await trim_each(log, {"a": 4, "b": 100, "unknown": 1})
        assert await log.bounds("a") == {0: Bounds(4, 6)}
        assert await log.bounds("b") == {0: Bounds(6, 6)}
        assert await log.bounds("c") == {0: Bounds(0, 6)}
        await trim_each(log, {"a": 2})
        assert (await log.read("a", 0, 0, 10, 1000)).payloads == [b"4", b"5"]
        assert (await log.read("c", 0, 0, 10, 1000)).payloads == [b"%d" % number for number in range(6)]
        await log.append("b", 0, [Record(b"6")])
        assert (await log.read("b", 0, 0, 10, 1000)).payloads == [b"6"]


async def test_records_past_the_retention_are_swept_and_younger_ones_stay(tmp_path: Path) -> None:
    async with SqliteBench(
        tmp_path, SCHEMA, lambda file, clock: SqliteLog(file, clock, retention=100.0), SqliteLog.open
    ) as bench:
        await bench.engine.append("s", 0, [Record(b"old")] * 3)
        await bench.engine.append("quiet", 0, [Record(b"old")] * 2)
        bench.clock.advance(60)
        await bench.engine.append("s", 0, [Record(b"young")] * 2)
        bench.clock.advance(60)
        await bench.engine.sweep()
        assert (await bench.engine.bounds("s"))[0] == (3, 5)
        assert (await bench.engine.bounds("quiet"))[0] == (2, 2)


def killed_while_appending(path: Path, lines: int) -> list[str]:
    """Starts a process that appends for ever, and kills it after so many lines. Returns all that it acknowledged."""
    process = subprocess.Popen([sys.executable, "-c", _APPEND, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    return said + [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("lines", [1, 150])
async def test_what_a_killed_process_had_acknowledged_is_there(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "log.db"
    said = killed_while_appending(path, lines)
    # Then everything acknowledged is where it was said to be, once, and nothing is torn
    file = SqliteFile(path, SCHEMA, name="log")
    await file.open()
    log = SqliteLog(file)
    await log.open()
    try:
        for partition, bounds in (await log.bounds("s")).items():
            found = await log.read("s", partition, 0, 1 << 20, 1 << 30)
            assert found.positions == list(range(bounds.end))
            assert found.payloads == [str(number // 2).encode() for number in range(bounds.end)]
        ends = await log.bounds("s")
        for line in said:
            partition, first, number = map(int, line.split())
            assert first == 2 * number
            assert first + 2 <= ends[partition].end
    finally:
        await file.close()
