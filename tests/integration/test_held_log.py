"""A reader that forgot its transaction lets a write-ahead log grow: an alert names it, until it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.assembly import embedded
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.gateway.rules.alerts import SeenBeside, alerts
from tailrace.model.overview import Overview
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem

MOST = 1 << 20
#: Reads, and waits for a line before it ends.
READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM tasks").fetchone()
print("reads", flush=True)
sys.stdin.readline()
"""


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_an_idle_reader_is_named_until_it_ends_and_the_log_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SWEEP_PERIOD", 0.05)
    file, log = tmp_path / "queue.db", tmp_path / "queue.db-wal"
    async with EmbeddedStores(tmp_path, StoresConfig(write_ahead=MOST)) as stores, asyncio.timeout(60):
        # Given a process that reads the queue's file, and does nothing else
        command = [sys.executable, "-c", READER, str(file)]
        with await asyncio.to_thread(started, command) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            await asyncio.to_thread(reader.stdout.readline)
            # When more is written than a log should have
            while log.stat().st_size <= 2 * MOST:
                await stores.queue.submit([NewItem(Kind("f", 2), b"x" * 100_000)] * 4)
            while "queue.db" not in stores.held_logs:
                await asyncio.sleep(0.01)
            # Then that process is named, and operators are told what to do
            held = stores.held_logs["queue.db"]
            assert held.size > MOST
            assert [name.split()[0] for name in held.readers] == [str(reader.pid)]
            assert set(stores.held_logs) == {"queue.db"}
            (alert,) = alerts(Overview(held_logs={"queue.db": (held.size, held.readers)}), SeenBeside(), 0.0)
            assert (alert.code, alert.subject) == ("log_held", "queue.db")
            assert str(reader.pid) in alert.what
            reader.stdin.write("\n")
        # And when it has ended, the log is begun anew, and nothing is told any more
        while stores.held_logs:
            await asyncio.sleep(0.01)
        assert log.stat().st_size <= MOST
        # And so is one that merely grew
        await stores.queue.submit([NewItem(Kind("f", 2), b"x" * 500_000)] * 4)
        while log.stat().st_size > MOST:
            await asyncio.sleep(0.01)
        assert not stores.held_logs
