"""A wall clock that is an hour ahead for a moment: schedules go on at once when it is right again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.platform import Platform

pytestmark = pytest.mark.trust(point=1)

#: Every process of the platform reads its wall clock so: ours, and what the file says.
PLANTED = """
import os, time
_time = time.time
def planted():
    try:
        return _time() + float(open(os.environ["TAILRACE_TEST_CLOCK"]).read() or 0)
    except (OSError, KeyError):
        return _time()
time.time = planted
"""
FUNCTIONS = """
import os
import tailrace

@tailrace.function
async def tick() -> None:
    with open(os.environ["TAILRACE_TEST_JOURNAL"], "a") as journal:
        journal.write("tick\\n")
"""


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(PLANTED)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "planted"), prepend=os.pathsep)
    monkeypatch.setenv("TAILRACE_TEST_CLOCK", str(tmp_path / "clock"))
    running = Platform(
        tmp_path / "data",
        [str(tmp_path / "functions.py")],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"slots": 2, "executors": 1},
    )
    await running.start()
    yield running
    await running.stop()


async def test_a_schedule_goes_on_when_a_clock_that_was_an_hour_ahead_is_right_again(
    platform: Platform, tmp_path: Path
) -> None:
    def ticks() -> int:
        journal = tmp_path / "journal"
        return len(journal.read_text().splitlines()) if journal.exists() else 0

    async def more(count: int) -> None:
        """Waits until there are so many ticks more."""
        before = ticks()
        try:
            async with asyncio.timeout(20):
                while ticks() < before + count:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"{ticks() - before} ticks within 20 s, and it is to tick every second")

    # Given a schedule that runs every second
    words = ("schedule", "add", "each-second", "tick", "--every", "1s", "--gateway", platform.gateway_address)
    await asyncio.to_thread(commands.tailrace, *words, check=True)
    await more(2)
    # When the clock is an hour ahead until it has run by that clock, and right again
    (tmp_path / "clock").write_text("3600")
    await more(2)
    (tmp_path / "clock").write_text("0")
    # Then it goes on
    await more(4)
