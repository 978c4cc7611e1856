"""A replicator of the embedded stores' files beside a node (Litestream): it keeps a read transaction open on each file,
writes the logs back itself, and has tables of its own there."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.lone_node import node

import tailrace
from tailrace.model.function_spec import FunctionSpec
from tailrace.wire.gateway import GatewayClient

#: Seconds that a start or a stop may take beside it; it took 5 s at each of four files.
PROMPT = 4.0

REPLICATOR = """
import sqlite3, sys
files = [sqlite3.connect(name, isolation_level=None) for name in sys.argv[1:]]
for each in files:
    each.execute("CREATE TABLE IF NOT EXISTS _replicated (id INTEGER PRIMARY KEY, seq INTEGER)")
for line in sys.stdin:
    for each in files:
        if line.strip() == "hold":
            each.execute("BEGIN")
            each.execute("SELECT count(*) FROM _replicated").fetchone()
        else:
            each.execute("ROLLBACK")
            each.execute("INSERT INTO _replicated VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1")
            each.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print("done", flush=True)
"""


class Replicator:
    """The replicator's process."""

    def __init__(self, data: Path) -> None:
        files = [str(each) for each in sorted(data.glob("*.db"))]
        assert len(files) == 4
        self._process = subprocess.Popen(
            [sys.executable, "-c", REPLICATOR, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def does(self, what: str) -> None:
        """Has it `hold` the files, or `write_back` their logs, and waits until it has."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(what, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        with self._process:  # closes its pipes
            self._process.kill()


@pytest.fixture
async def beside(tmp_path: Path) -> AsyncIterator[Replicator]:
    async with node(tmp_path) as running, GatewayClient(running.addresses["gateway"]) as operator:
        await operator.register_functions("test", [FunctionSpec("work")])
    replicator = Replicator(tmp_path / "data")
    yield replicator
    replicator.end()


@pytest.mark.trust(point=19)
async def test_a_start_and_a_stop_wait_for_no_reader_and_a_log_that_was_written_back_is_no_copy(
    tmp_path: Path, beside: Replicator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(2):
        # Given a replicator that reads all files
        await asyncio.to_thread(beside.does, "hold")
        # When a node starts, takes work and stops, Then neither waits for it
        began = time.monotonic()
        async with node(tmp_path) as running:
            assert time.monotonic() - began < PROMPT
            async with tailrace.AsyncClient(running.addresses["gateway"]) as client:
                await client.submit("work")
            began = time.monotonic()
        assert time.monotonic() - began < PROMPT
        # And when it writes the logs back, which changes the files, Then the next start finds no copy
        await asyncio.to_thread(beside.does, "write_back")
    async with node(tmp_path):
        assert [said for said in caplog.messages if "put back" in said] == []
