"""The process that reads objects is killed in the middle of listings, of large objects and of packed ones. By the
journal of the functions each line is covered, none is lost, none settled before it was done."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.platform import Platform
from tailrace.model.errors import Unavailable
from tailrace.stores.remote import RemoteCheckpoints
from tailrace.tailers.sources.objects import ObjectsOptions

FUNCTIONS = str(Path(__file__).parent / "objects_functions.py")
WINDOW = 500
KILLS = (0.0, 0.1, 0.4, 0.8)


def fill(folder: Path) -> set[str]:
    """Large objects, a packed one, and more small ones than a page of a listing holds; all lines differ."""
    folder.mkdir()
    names = [
        *(f"large-{number}" for number in range(2)),
        "packed.gz",
        *(f"small-{number:04}" for number in range(2500)),
    ]
    lines: set[str] = set()
    for name in names:
        mine = [f"{name}:{number}" for number in range(1 if name.startswith("small") else 3000)]
        content = "".join(f'{{"line": "{line}"}}\n' for line in mine).encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        lines.update(mine)
    return lines


class Journal:
    """The journal so far: by id the line of each item, and the ids that ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[str] = []
        self.lines: dict[str, str] = {}
        self.ended: set[int] = set()
        self._at = 0

    def look(self) -> None:
        """Reads the journal on."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        for event in whole.decode().splitlines():
            start, _, line = event.rpartition(" ")
            self.events.append(start)
            word, id, *_ = start.split()
            assert self.lines.setdefault(id, line) == line, f"{id} is another line than before"
            if word == "end":
                self.ended.add(int(id.rpartition("/")[2]))


async def checkpoint(platform: Platform, partition: str, before: int) -> int:
    """The position up to which everything is settled, by the store; while no node answers, that from before."""
    async with RemoteCheckpoints(platform.store_address) as checkpoints:
        try:
            mark = (await checkpoints.load("events")).get(partition)
        except Unavailable:
            return before
    return before if mark is None else mark.position


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["inventory", pytest.param("lexicographic", marks=pytest.mark.long(minutes=0.5))])
async def test_kills_in_the_middle_of_objects_and_listings_lose_no_line_and_settle_none_early(
    mode: str, tmp_path: Path
) -> None:
    # Given objects in a folder, and a tailer that reads them in small blocks
    lines = fill(tmp_path / "in")
    url = f"file://{tmp_path / 'in'}"
    partition = ObjectsOptions(url=url, format="jsonl").fingerprint()
    (tmp_path / "events.yaml").write_text(
        f"name: events\nfunction: cover\nwindow: {{items: {WINDOW}}}\n"
        f"source: {{kind: objects, url: '{url}', mode: {mode}, format: jsonl, block: 4KiB, poll: 100ms}}\n"
    )
    journal = Journal(tmp_path / "journal")
    journal.path.touch()
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "events.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal.path)},
        worker={"executors": 1},
    )
    settled = 0

    async def until(share: float) -> None:
        nonlocal settled
        async with asyncio.timeout(90):
            while len(journal.ended) < share * len(lines):
                await asyncio.sleep(0.05)
                settled = await checkpoint(platform, partition, settled)
                journal.look()  # what the checkpoint says was done must have ended before
                assert journal.ended.issuperset(range(settled)), "settled before it was done"

    await platform.start()
    try:
        # When its process is killed again and again
        for share in KILLS:
            await until(share)
            await asyncio.sleep(random.random() / 5)
            node = platform.pids().get("node")
            assert node is not None
            os.kill(node, signal.SIGKILL)
            async with asyncio.timeout(30):
                while platform.pids().get("node") in (None, node):
                    await asyncio.sleep(0.02)
        await until(1.0)
        async with asyncio.timeout(60):
            while settled < len(lines):
                settled = await checkpoint(platform, partition, settled)
                await asyncio.sleep(0.05)
    finally:
        await platform.stop()
    # Then each line was covered under an id of its own, and nothing ran twice at once
    journal.look()
    assert set(journal.lines.values()) == lines and len(journal.lines) == len(lines) == settled
    verdict = judge(journal.events)
    assert verdict.overlaps == set()
    assert verdict.executions - len(lines) <= len(KILLS) * WINDOW


@pytest.mark.parametrize("function", ["measure_content", "measure_in_thread"])
async def test_a_large_object_is_streamed_by_reference_and_a_small_one_is_its_payload(
    function: str, tmp_path: Path
) -> None:
    # Given objects, of which some are too large to travel
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "small").write_bytes(b"s" * 1000)
    (folder / "large").write_bytes(b"l" * 3_000_000)
    (folder / "packed.gz").write_bytes(gzip.compress(random.randbytes(2_500_000), 1))
    url = f"file://{folder}"
    (tmp_path / "files.yaml").write_text(
        f"name: files\nsource: {{kind: objects, url: '{url}', max_value: 100KiB}}\nfunction: {function}\n"
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/worker.yaml").write_text(f"executors: 1\nobjects: [{{url: 'file://{tmp_path}'}}]\n")
    journal = tmp_path / "journal"
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "files.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        config=tmp_path / "configs",
    )
    await platform.start()
    try:
        sizes: list[str] = []
        async with asyncio.timeout(30):
            while len(sizes) < 3:
                await asyncio.sleep(0.05)
                if journal.exists():
                    sizes = [line.rpartition(" ")[2] for line in journal.read_text().splitlines()]
    finally:
        await platform.stop()
    assert sorted(map(int, sizes)) == [1000, 2_500_000, 3_000_000]
