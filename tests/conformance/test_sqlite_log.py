"""The embedded log obeys the laws of logs, and keeps what it acknowledged when its process is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tailrace.stores.log.log import Log, Record
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.sqlite import SqliteFile
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.log import LogLaws

_APPEND = """
import asyncio, itertools, sys
from pathlib import Path
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.sqlite import SqliteFile

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
    """What a process acknowledged that appends for ever and is killed after it said so many lines."""
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
