"""Priority and deadline inside a stream with every process real: the functions' journal shows which items started
when."""

from __future__ import annotations

import asyncio
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
priority: {rules: [{header: type, is: refund, priority: interactive}], default: eventual}
look_ahead: 600
expires: {header: until}
on_expiry: dead_letter
"""
BACKLOG, LATE, URGENT = 500, 10, 20


def journaled(journal: Path, word: str) -> list[int]:
    """The positions of all journal lines of one word, in that order."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [int(line.split()[1].rsplit("/", 1)[1]) for line in lines if line.startswith(f"{word} ")]


@pytest.mark.long(minutes=0.5)
async def test_what_is_urgent_starts_before_a_backlog_and_what_is_late_never(tmp_path: Path) -> None:
    # Given a stream with a backlog, behind it items that are too late, and behind those urgent ones
    payload = b'{"seconds": 0.01}'
    records = [Record(payload)] * BACKLOG
    records += [Record(payload, headers=(("until", "2020-01-01T00:00:00Z"),))] * LATE
    records += [Record(payload, headers=(("type", "refund"), ("until", "1h")))] * URGENT
    async with EmbeddedStores(tmp_path / "data") as stores:
        await stores.log.append("accounts", 0, records)
    (tmp_path / "accounts.yaml").write_text(TAILER)
    journal = tmp_path / "journal"
    # When the platform runs
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "accounts.yaml"],
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        worker={"slots": 4, "executors": 1},
    )
    await platform.start()
    try:
        async with asyncio.timeout(60):
            while len(journaled(journal, "end")) < BACKLOG + URGENT:
                await asyncio.sleep(0.05)
    finally:
        await platform.drain(5)
        await platform.stop()
    # Then the urgent ones started when hardly more of the backlog had than may be out, and the late ones did not
    started = journaled(journal, "start")
    assert sorted(started) == [*range(BACKLOG), *range(BACKLOG + LATE, BACKLOG + LATE + URGENT)]
    last = max(started.index(position) for position in range(BACKLOG + LATE, BACKLOG + LATE + URGENT))
    assert last < BACKLOG // 2
    async with EmbeddedStores(tmp_path / "data") as stores:
        assert await stores.dead_letters.count() == LATE
