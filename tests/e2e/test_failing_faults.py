"""A node is killed while a stream full of failing items passes: nothing is lost, no attempt is forgotten."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record

sys.path.insert(0, str(Path(__file__).parent))
from journal import Verdict, judge

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 200
FAILING = 4  # one in so many fails its first two attempts
TAILER = "name: failing\nsource: {kind: log, stream: failing}\nfunction: work\nwindow: {items: 60}\n"


async def reached(journal: Path, enough: Callable[[list[str]], bool]) -> list[str]:
    """Waits for the journal to say enough; its lines."""
    lines: list[str] = []
    try:
        async with asyncio.timeout(90):
            while not enough(lines):
                await asyncio.sleep(0.2)
                lines = journal.read_text().splitlines() if journal.exists() else []
    except TimeoutError:
        pytest.fail(f"after 90 s the journal says: {judge(lines)}")
    return lines


def ended(lines: list[str]) -> set[str]:
    return {line.split()[1] for line in lines if line.startswith("end ")}


async def test_a_node_killed_among_failing_items_loses_none_and_forgets_no_attempt(tmp_path: Path) -> None:
    # Given a stream in which some items fail their first two attempts
    payloads = [b'{"seconds": 0.05, "fail_first": %d}' % (0 if n % FAILING else 2) for n in range(ITEMS)]
    async with EmbeddedStores(tmp_path / "data") as stores:
        await stores.log.append("failing", 0, [Record(payload) for payload in payloads])
    tailer, journal = tmp_path / "failing.yaml", tmp_path / "journal"
    tailer.write_text(TAILER)
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tailer],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        worker={"slots": 10, "executors": 2},
    )
    await platform.start()
    try:
        # When the node is killed with parked, running and waiting items in it, twice
        for share in (6, 2):
            # (on a busy machine so much may have ended before the node is back from the first time)
            await reached(
                journal, lambda lines, share=share: len(ended(lines)) > ITEMS // share and "node" in platform.pids()
            )
            os.kill(platform.pids()["node"], signal.SIGKILL)
        expected = {f"failing/0/{n}" for n in range(ITEMS)}
        lines = await reached(journal, lambda lines: ended(lines) >= expected)
        await platform.drain(10)  # what the functions wrote last is settled too
    finally:
        await platform.stop()
    # Then all have ended, one execution at a time, and each attempt's number is known to the next
    verdict: Verdict = judge(lines)
    assert verdict.overlaps == set() and verdict.ended == expected
    attempts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        word, id_, fence, attempt, *_ = line.split()
        if word in ("fail", "end"):
            attempts[id_].append((int(fence), int(attempt)))
    for id_, ran in attempts.items():
        numbers = [attempt for _, attempt in sorted(ran)]
        assert numbers == sorted(numbers), f"{id_} began anew: {numbers}"
        assert max(numbers) == (1 if int(id_.rsplit("/", 1)[1]) % FAILING else 3)
    # And at rest no row is left
    async with EmbeddedStores(tmp_path / "data") as stores:
        assert await stores.ledger.counts() == {}
