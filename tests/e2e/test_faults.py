"""Processes are killed under load; by the functions' own journal nothing is lost, and nothing runs twice at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.bench.process import descendants
from tailrace.stores.log.log import Record

sys.path.insert(0, str(Path(__file__).parent))
from journal import Verdict, judge

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 300
TAILER = "name: faults\nsource: {kind: log, stream: faults}\nfunction: steady\nwindow: {items: 100}\n"


def test_the_judge_sees_what_is_planted() -> None:
    whole = ["start a 1 1 1.0 7", "tick a 1 1 1.1 7", "end a 1 1 1.2 7"]
    late = ["start a 1 1 1.0 7", "start a 2 1 1.1 8", "tick a 1 1 1.15 7", "end a 2 1 1.2 8"]
    torn = ["start a 1 1 1.0 7", "start a 2 1 1.1 8", "end a 2 1 1.2 8"]
    assert judge(whole) == Verdict({"a"}, {"a"}, set(), 1)
    assert judge(late).overlaps == {"a"}
    assert judge(torn) == Verdict({"a"}, {"a"}, set(), 2)
    assert judge(["start a 1 1 1.0 7"]).ended == set()


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        for _ in range(ITEMS // 50):
            await stores.log.append("faults", 0, [Record(b'{"ticks": 20}')] * 50)
    tailer = tmp_path / "faults.yaml"
    tailer.write_text(TAILER)
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tailer],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"slots": 20, "executors": 2},
    )
    await running.start()
    yield running
    await running.stop()


def kill_worker(platform: Platform) -> None:
    os.kill(platform.pids()["worker"], signal.SIGKILL)


def kill_executor(platform: Platform) -> None:
    os.kill(descendants(platform.pids()["worker"])[1], signal.SIGKILL)


def kill_scheduler(platform: Platform) -> None:
    os.kill(platform.pids()["scheduler"], signal.SIGKILL)


def kill_node(platform: Platform) -> None:
    os.kill(platform.pids()["node"], signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_executor, kill_worker, kill_scheduler, kill_node])
async def test_a_kill_under_load_loses_nothing_and_runs_nothing_twice_at_once(
    platform: Platform, tmp_path: Path, kill: Callable[[Platform], None]
) -> None:
    # Given a log and a queue full of work, and some of it running
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        handles = await client.submit_many([tailrace.Call("steady", ticks=20) for _ in range(ITEMS)])
        expected = {handle.id for handle in handles} | {f"faults/0/{position}" for position in range(ITEMS)}
        journal = tmp_path / "journal"
        await reached(journal, lambda verdict: len(verdict.ended) > ITEMS // 6)
        # When a process is killed
        kill(platform)
        # Then everything ends, each id by one execution at a time
        verdict = await reached(journal, lambda verdict: verdict.ended >= expected)
    assert verdict.overlaps == set()
    assert verdict.ended == expected
    assert verdict.executions <= 2 * ITEMS + 150, "only what was in flight may run again"


async def reached(journal: Path, enough: Callable[[Verdict], bool]) -> Verdict:
    """Waits for the journal to say enough."""
    verdict = Verdict()
    try:
        async with asyncio.timeout(60):
            while True:
                if journal.exists():
                    verdict = judge(journal.read_text().splitlines())
                    if enough(verdict):
                        return verdict
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"after 60 s only {len(verdict.ended)} of {len(verdict.started)} started ids ended")
