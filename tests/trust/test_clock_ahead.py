"""A wall clock that is ahead for a moment, or at a start: nothing that was accepted is taken for old, schedules go on
at once when it is right again, and no gate, which protects, ends before its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes import commands
from scenes.wrong_clock import with_clock

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Bounds, Record
from tailrace.stores.remote import RemoteLog

pytestmark = pytest.mark.trust(point=1)

FUNCTIONS = """
import os
import tailrace

@tailrace.function
async def doubled(n: int) -> int:
    with open(os.environ["TAILRACE_TEST_JOURNAL"], "a") as journal:
        journal.write(f"{n}\\n")
    return 2 * n

@tailrace.function
async def tick() -> None:
    with open(os.environ["TAILRACE_TEST_JOURNAL"], "a") as journal:
        journal.write("tick\\n")

@tailrace.function
async def pay() -> None: ...
"""
AHEAD = 8 * 86_400.0
#: Seconds in which the stores sweep twice.
SWEPT = 13.0
RECORDS = 200


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    running = with_clock(
        tmp_path, monkeypatch, tmp_path / "functions.py", heartbeat=0.3, worker={"slots": 2, "executors": 1}
    )
    await running.start()
    yield running
    await running.stop()


async def told(platform: Platform) -> str:
    """The alert that deletions wait, or nothing where none came while the stores swept twice."""
    with_alert = asyncio.get_running_loop().time() + SWEPT
    while asyncio.get_running_loop().time() < with_alert:
        said = await asyncio.to_thread(commands.tailrace, "alerts", "--gateway", platform.gateway_address)
        if found := [line for line in said.stdout.splitlines() if "deletions by age wait" in line]:
            await asyncio.sleep(6.0)  # no signal tells of a sweep that deletes nothing
            return found[0]
        await asyncio.sleep(0.3)
    return ""


@pytest.mark.parametrize("when", ["for a moment", "at the start"])
async def test_what_was_accepted_stays_under_a_clock_that_is_eight_days_ahead(
    platform: Platform, tmp_path: Path, when: str
) -> None:
    # Given a workload with a dedupe key that is done, a complete job, and records that nobody has read
    async with tailrace.AsyncClient(platform.gateway_address) as client, RemoteLog(platform.store_address) as log:
        first = await client.submit("doubled", n=1, dedupe_key="only once")
        assert await first.result(timeout=30) == 2
        job = client.job("all", "doubled", key="all")
        await job.add_many([{"n": 10}, {"n": 11}])
        await job.seal()
        await job.wait(30)
        for _ in range(RECORDS // 50):
            await log.append("orders", 0, [Record(b"{}")] * 50)
    # When the clock of the host is wrong while the stores sweep, and right again
    if when == "at the start":
        await platform.stop()
    (tmp_path / "clock").write_text(str(AHEAD))
    if when == "at the start":
        await platform.start()
    alert = await told(platform)
    (tmp_path / "clock").write_text("0")
    # Then it was told, and all is there: every record, the job with its results, and the dedupe key
    async with tailrace.AsyncClient(platform.gateway_address) as client, RemoteLog(platform.store_address) as log:
        assert await log.bounds("orders") == {0: Bounds(0, RECORDS)}
        again = await client.submit("doubled", n=1, dedupe_key="only once")
        assert again.id == first.id
        assert await again.result(timeout=30) == 2
        shown = commands.tailrace("job", "show", job.id, "--gateway", platform.gateway_address, check=True).stdout
        assert "complete" in shown
    assert sorted((tmp_path / "journal").read_text().split()) == ["1", "10", "11"]
    assert "8d" in alert or "7d" in alert, f"expected an alert that tells by how much the clock is ahead: {alert!r}"


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


async def test_a_gate_for_an_hour_stands_after_a_moment_of_a_clock_that_is_eight_days_ahead(
    platform: Platform, tmp_path: Path
) -> None:
    async def command(*words: str) -> str:
        given = (*words, "--gateway", platform.gateway_address)
        return (await asyncio.to_thread(commands.tailrace, *given, check=True)).stdout

    # Given a gate that stands for an hour
    await command("gate", "pause", "pay", "--for", "1h", "--why", "the bank is down")
    # When the clock is wrong while gates are looked at, as they are at each change
    (tmp_path / "clock").write_text(str(AHEAD))
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
