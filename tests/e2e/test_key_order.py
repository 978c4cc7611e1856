"""`order: key` with every process real: the functions' journal shows each key's order, whichever process was killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
TAILER = """\
name: accounts
source: {kind: log, stream: accounts}
function: work
order: key
key: {record: true}
"""
ITEMS = 240
KEYS = [random.Random(7).choice("abcdefghijkl") for _ in range(ITEMS)]


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        for place, key in enumerate(KEYS):
            payload = b'{"seconds": 0.02, "fail_first": %d}' % (place % 20 == 3)
            await stores.log.append("accounts", 0, [Record(payload, key=key)])
    (tmp_path / "accounts.yaml").write_text(TAILER)
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "accounts.yaml"],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"slots": 20, "executors": 2},
    )
    await running.start()
    yield running
    await running.stop()


async def test_each_key_keeps_its_order_while_items_fail_and_a_worker_is_killed(
    platform: Platform, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    # Given a stream of many keys, of which some items fail at first, and some of them running
    await reached(journal, ITEMS // 6)
    # When the worker is killed
    os.kill(platform.pids()["worker"], signal.SIGKILL)
    # Then everything ends, and within each key in the order of the stream
    events = await reached(journal, ITEMS)
    assert disorder(events) == []


def test_disorder_is_seen_when_it_is_planted() -> None:
    def line(word: str, position: int) -> tuple[str, int]:
        return word, position

    same = next(place for place in range(1, ITEMS) if KEYS[place] == KEYS[0])
    assert disorder([line("start", 0), line("end", 0), line("start", same), line("end", same)]) == []
    assert disorder([line("start", 0), line("start", same)]) == [f"{same} started before 0 had ended"]
    assert disorder([line("start", 0), line("fail", 0), line("start", same)]) == [f"{same} started before 0 had ended"]
    assert disorder([line("start", same), line("end", same), line("start", 0)]) == [
        f"{same} started before 0 had ended", f"0 started after {same}",
    ]  # fmt: skip


def disorder(events: list[tuple[str, int]]) -> list[str]:
    """Faults in a journal, read in the order of its times: all that is not in the order of the keys."""
    faults = []
    ended: set[int] = set()
    newest: dict[str, int] = defaultdict(lambda: -1)
    for word, position in events:
        key = KEYS[position]
        if word == "start":
            before = [place for place in range(position) if KEYS[place] == key]
            faults += [f"{position} started before {place} had ended" for place in before if place not in ended]
            if newest[key] > position:
                faults.append(f"{position} started after {newest[key]}")
            newest[key] = max(newest[key], position)
        elif word == "end":
            ended.add(position)
    return faults


async def reached(journal: Path, count: int) -> list[tuple[str, int]]:
    """The journal's events, once so many items have ended."""
    events: list[tuple[str, int]] = []
    try:
        async with asyncio.timeout(90):
            while True:
                lines = journal.read_text().splitlines() if journal.exists() else []
                found = sorted(
                    (line.split() for line in lines if line.count(" ") == 5), key=lambda each: float(each[4])
                )
                events = [(each[0], int(each[1].rsplit("/", 1)[1])) for each in found]
                if len({position for word, position in events if word == "end"}) >= count:
                    return events
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"after 90 s only {len({p for word, p in events if word == 'end'})} of {count} items ended")
