"""Records of the log past their retention that a tailer has not settled: they stay while the tailer is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

pytestmark = pytest.mark.trust(point=1)

FUNCTIONS = """
import os
import tailrace

@tailrace.function
async def noted(n: int) -> None:
    with open(os.environ["TAILRACE_TEST_JOURNAL"], "a") as journal:
        journal.write(f"{n}\\n")
"""
RECORDS = 60


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stores.yaml").write_text("log_retention: 1s\n")
    (tmp_path / "orders.yaml").write_text("name: orders\nsource: {kind: log, stream: orders}\nfunction: noted\n")
    running = Platform(
        tmp_path / "data",
        [str(tmp_path / "functions.py")],
        tmp_path / "config",
        [tmp_path / "orders.yaml"],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"slots": 4, "executors": 1},
    )
    await running.start()
    yield running
    await running.stop()


async def until(true: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(30):
            while not true():
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"{what}: not within 30 s")


async def test_records_that_a_paused_tailer_has_not_settled_outlive_their_retention(
    platform: Platform, tmp_path: Path
) -> None:
    def ran() -> list[int]:
        journal = tmp_path / "journal"
        return sorted(map(int, journal.read_text().split())) if journal.exists() else []

    def command(*words: str) -> str:
        return commands.tailrace(*words, "--gateway", platform.gateway_address, check=True).stdout

    async with RemoteLog(platform.store_address) as log:
        # Given a tailer that has settled the first record, and is paused
        await log.append("orders", 0, [Record(b'{"n": 0}')])
        await until(lambda: ran() == [0], "the first record runs")
        await until(lambda: " 1 " in command("tailer", "list"), "it is settled")
        await asyncio.to_thread(command, "tailer", "pause", "orders", "--why", "a look")
        # When what it did not read is older than the retention, and the log is swept
        await log.append("orders", 0, [Record(b'{"n": %d}' % n) for n in range(1, RECORDS)])
        await log.append("nobody reads this", 0, [Record(b"{}")])
        async with asyncio.timeout(30):
            while not (await log.bounds("nobody reads this"))[0].start:
                await asyncio.sleep(0.1)
        # Then it runs all of it when it goes on
        await asyncio.to_thread(command, "tailer", "resume", "orders")
        await until(lambda: len(ran()) >= RECORDS, "what waited runs")
        assert ran() == [*range(RECORDS)]
