"""A wall clock that is eight days ahead, for a moment or at a start: nothing that was accepted is taken for old."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Bounds, Record
from tailrace.stores.remote import RemoteLog

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
async def doubled(n: int) -> int:
    with open(os.environ["TAILRACE_TEST_JOURNAL"], "a") as journal:
        journal.write(f"{n}\\n")
    return 2 * n
"""
AHEAD = 8 * 86_400.0
#: Seconds in which the stores sweep twice.
SWEPT = 13.0
RECORDS = 200


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
