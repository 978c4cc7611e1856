"""A wall clock that is eight days ahead for a moment: it ends no gate, which protects, before its time."""

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
FUNCTIONS = "import tailrace\n\n@tailrace.function\nasync def pay() -> None: ...\n"


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(PLANTED)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "planted"), prepend=os.pathsep)
    monkeypatch.setenv("TAILRACE_TEST_CLOCK", str(tmp_path / "clock"))
    running = Platform(tmp_path / "data", [str(tmp_path / "functions.py")], heartbeat=0.3, worker={"executors": 1})
    await running.start()
    yield running
    await running.stop()


async def test_a_gate_for_an_hour_stands_after_a_moment_of_a_clock_that_is_eight_days_ahead(
    platform: Platform, tmp_path: Path
) -> None:
    async def command(*words: str) -> str:
        given = (*words, "--gateway", platform.gateway_address)
        return (await asyncio.to_thread(commands.tailrace, *given, check=True)).stdout

    # Given a gate that stands for an hour
    await command("gate", "pause", "pay", "--for", "1h", "--why", "the bank is down")
    # When the clock is wrong while gates are looked at, as they are at each change
    (tmp_path / "clock").write_text(str(8 * 86_400.0))
    for collection in ("a", "b", "c"):
        await command("gate", "pause", "pay", "--collection", collection, "--why", "a change")
        await asyncio.sleep(0.6)  # no signal tells of a look that ends nothing
    (tmp_path / "clock").write_text("0")
    # Then the gate stands, and one that is for a second goes by itself
    assert "the bank is down" in await command("gate", "list")
    await command("gate", "pause", "pay", "--collection", "d", "--for", "1s", "--why", "for a second")
    async with asyncio.timeout(20):
        while "for a second" in await command("gate", "list"):
            await asyncio.sleep(0.2)
    assert "the bank is down" in await command("gate", "list")
