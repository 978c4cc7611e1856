"""A redriven item of a stream in order waits in the line of its key there, and its key waits for it: whatever happens,
one of a key runs at a time."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from scenes import commands

from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

FUNCTIONS = '''
import os
import sqlite3
import time
import tailrace

FOLDER = os.environ["TAILRACE_TEST_FOLDER"]

def told(word: str, key: str, n: int) -> bool:
    return os.path.exists(f"{FOLDER}/{word}-{key[0]}-{n}")

def note(what: str, ctx: tailrace.Context, key: str, n: int) -> None:
    row = (what, key, n, ctx.id, getattr(ctx, "origin", ""), ctx.fence)
    with sqlite3.connect(f"{FOLDER}/runs.db", timeout=10, isolation_level=None) as runs:
        runs.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)
    runs.close()

@tailrace.function(retry=tailrace.Retry(max_attempts=3, first="100ms"))
def work(ctx: tailrace.Context, key: str, n: int) -> None:
    """Runs for as long as it is told, and ends as it is told."""
    note("begin", ctx, key, n)
    try:
        if told("dies", key, n):
            raise tailrace.Fatal("as told")
        if told("fails", key, n) and ctx.attempt < 3:
            raise ValueError("as told")
        while told("holds", key, n):
            time.sleep(0.02)
    finally:
        note("end", ctx, key, n)
'''
TAILER = """\
name: docs
source: {kind: log, stream: docs}
function: work
order: key
key: {record: true}
"""


class Scene:
    """A platform whose items do as files tell them; what ran is in a table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "functions.py").write_text(FUNCTIONS)
        (folder / "docs.yaml").write_text(TAILER)
        with closing(sqlite3.connect(folder / "runs.db")) as made:
            made.executescript(
                "PRAGMA journal_mode = WAL;"
                " CREATE TABLE runs (what TEXT, key TEXT, n INT, id TEXT, origin TEXT, fence INT);"
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Platform]:
        platform = Platform(
            self.folder / "data",
            [str(self.folder / "functions.py")],
            tailers=[self.folder / "docs.yaml"],
            heartbeat=0.5,
            environment={"TAILRACE_TEST_FOLDER": str(self.folder)},
        )
        try:
            await platform.start()
            yield platform
        finally:
            await platform.stop()

    def tell(self, word: str, *items: tuple[str, int]) -> None:
        for key, n in items:
            (self.folder / f"{word}-{key}-{n}").touch()

    def tell_no_more(self, word: str, *items: tuple[str, int]) -> None:
        for key, n in items:
            (self.folder / f"{word}-{key}-{n}").unlink()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "runs.db", timeout=10)) as read:
            return read.execute(query).fetchall()

    def runs(self, key: str) -> list[tuple[str, int]]:
        """Begins and ends of the runs of a key's items, in their order."""
        return [(what, n) for what, of, n in self.rows("SELECT what, key, n FROM runs ORDER BY rowid") if of == key]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not true():
                await asyncio.sleep(0.02)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def append(platform: Platform, *items: tuple[str, int]) -> None:
    async with RemoteLog(platform.store_address) as log:
        for key, n in items:
            await log.append("docs", 0, [Record(json.dumps({"key": key, "n": n}).encode(), key=key)])


async def tailrace(platform: Platform, *words: str) -> Any:
    environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
    as_json = () if words[0] == "gate" else ("--json",)
    done = await asyncio.to_thread(commands.tailrace, *words, *as_json, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if as_json else done.stdout


async def dead(platform: Platform, count: int) -> list[dict[str, Any]]:
    """The dead letters, once there are so many."""
    async with asyncio.timeout(30):
        while len(letters := await tailrace(platform, "dead", "list")) != count:
            await asyncio.sleep(0.1)
    return list(letters)


def one_at_a_time(runs: list[tuple[str, int]]) -> bool:
    """Whether each run ended before the next one began."""
    return all(
        what == ("begin", "end")[place % 2] and (what == "begin" or runs[place - 1][1] == n)
        for place, (what, n) in enumerate(runs)
    )


@pytest.mark.trust(point=10)
async def test_a_redriven_item_of_a_stream_waits_in_the_line_of_its_key(scene: Scene) -> None:
    async with scene.running() as platform:
        # Given a dead letter of a key whose next item runs, and one of another key
        scene.tell("dies", ("a", 1), ("b", 1))
        scene.tell("holds", ("a", 1), ("a", 2))
        await append(platform, ("a", 1), ("b", 1), ("a", 2))
        await dead(platform, 2)
        await scene.until(lambda: ("begin", 2) in scene.runs("a"))
        # When both are redriven, and the other one has run
        scene.tell_no_more("dies", ("a", 1), ("b", 1))
        await tailrace(platform, "dead", "redrive", "--function", "work")
        await scene.until(lambda: scene.runs("b").count(("end", 1)) == 2)
        # Then the first one waits until nothing of its key is out
        assert scene.runs("a")[-1] == ("begin", 2)
        scene.tell_no_more("holds", ("a", 2))
        await scene.until(lambda: scene.runs("a").count(("begin", 1)) == 2)
        # And what comes of its key waits while it runs
        await append(platform, ("a", 3), ("c", 1))
        await scene.until(lambda: ("end", 1) in scene.runs("c"))
        assert ("begin", 3) not in scene.runs("a")
        scene.tell_no_more("holds", ("a", 1))
        await scene.until(lambda: ("end", 3) in scene.runs("a"))
        assert one_at_a_time(scene.runs("a"))
        # And it is the item that it was, newer than what its key had before, and older than what it has next
        begun = scene.rows("SELECT n, id, origin, fence FROM runs WHERE what = 'begin' AND key = 'a' ORDER BY rowid")
        assert [n for n, *_ in begun] == [1, 2, 1, 3]
        assert begun[2][1:3] == begun[0][1:3] == ("docs/0/0", "docs/0/0")
        assert [fence for *_, fence in begun] == sorted({fence for *_, fence in begun})
        # And nothing is left of the letters
        await dead(platform, 0)


@pytest.mark.trust(point=10)
async def test_what_is_redriven_of_one_key_goes_in_order_and_its_retries_keep_the_line(scene: Scene) -> None:
    async with scene.running() as platform:
        # Given three letters of one key, redriven while a later item runs; the second one fails twice then
        those = [("a", n) for n in (1, 2, 3)]
        scene.tell("dies", *those)
        scene.tell("fails", ("a", 2))
        scene.tell("holds", ("a", 4))
        await append(platform, *those, ("a", 4), ("a", 5))
        await dead(platform, 3)
        await scene.until(lambda: ("begin", 4) in scene.runs("a"))
        scene.tell_no_more("dies", *those)
        await tailrace(platform, "dead", "redrive", "--function", "work")
        # When that one ends once they wait in the line
        await in_line(platform, 4)
        scene.tell_no_more("holds", ("a", 4))
        await scene.until(lambda: ("end", 5) in scene.runs("a"))
        # Then they go in the order in which they died, each until it is over, and the others behind them
        assert one_at_a_time(scene.runs("a"))
        assert [n for what, n in scene.runs("a") if what == "begin"] == [1, 2, 3, 4, 1, 2, 2, 2, 3, 5]
        await dead(platform, 0)


@pytest.mark.trust(point=10)
async def test_one_that_dies_again_keeps_its_past_and_is_redriven_again(scene: Scene) -> None:
    async with scene.running() as platform:
        # Given a letter that was redriven too early
        scene.tell("dies", ("a", 1))
        await append(platform, ("a", 1))
        [first] = await dead(platform, 1)
        await tailrace(platform, "dead", "redrive", first["id"])
        await scene.until(lambda: scene.runs("a").count(("end", 1)) == 2)
        async with asyncio.timeout(30):
            while (again := (await dead(platform, 1))[0])["number"] == first["number"]:
                await asyncio.sleep(0.1)
        assert (again["id"], again["redrives"], again["attempts"]) == (first["id"], 1, 1)
        # When it is redriven once its function is mended
        scene.tell_no_more("dies", ("a", 1))
        await tailrace(platform, "dead", "redrive", first["id"])
        # Then it is done, and every position is accounted for
        await dead(platform, 0)
        await scene.until(lambda: scene.runs("a").count(("end", 1)) == 3)
        [status] = [each for each in await tailrace(platform, "tailer", "list") if each["name"] == "docs"]
        assert status["unaccounted"] == 0


@pytest.mark.trust(point=10)
async def test_the_line_holds_after_the_tailer_came_back(scene: Scene) -> None:
    # Given a letter that was redriven while a later item of its key runs
    async with scene.running() as platform:
        scene.tell("dies", ("a", 1))
        scene.tell("holds", ("a", 2))
        await append(platform, ("a", 1), ("a", 2))
        await dead(platform, 1)
        await scene.until(lambda: ("begin", 2) in scene.runs("a"))
        scene.tell_no_more("dies", ("a", 1))
        await tailrace(platform, "dead", "redrive", "--function", "work")
        await in_line(platform, 1)
    # When everything ends, and comes back
    before = len(scene.runs("a"))
    async with scene.running() as platform:
        await scene.until(lambda: len(scene.runs("a")) > before)
        scene.tell_no_more("holds", ("a", 2))
        # Then each runs once, one at a time, and the letter is gone
        await scene.until(lambda: len(scene.runs("a")) == before + 4)
        await dead(platform, 0)
        since = [n for what, n in scene.runs("a")[before:] if what == "begin"]
        assert sorted(since) == [1, 2]
        assert one_at_a_time(scene.runs("a")[before:])


async def in_line(platform: Platform, held: int) -> None:
    """Waits until the tailer holds so many items."""
    async with asyncio.timeout(30):
        while True:
            found = {each["name"]: each for each in await tailrace(platform, "tailer", "list")}
            if found["docs"]["held"] == held:
                return
            await asyncio.sleep(0.1)


@pytest.mark.trust(point=10)
async def test_redriven_items_move_although_they_fill_the_window(scene: Scene) -> None:
    # Given a small window, and letters that are larger than it together, of keys that wait for their next items
    (scene.folder / "docs.yaml").write_text(TAILER + "window: {items: 8, bytes: 4KiB}\n")
    those = [(chr(ord("a") + number) * 1500, 1) for number in range(4)]
    async with scene.running() as platform:
        scene.tell("dies", *[(key[0], 1) for key, _ in those])
        await append(platform, *those)
        await dead(platform, 4)
        scene.tell_no_more("dies", *[(key[0], 1) for key, _ in those])
        # When they are redriven while the function is paused, and it is resumed
        await tailrace(platform, "gate", "pause", "work")
        await tailrace(platform, "dead", "redrive", "--function", "work")
        await in_line(platform, 4)
        await tailrace(platform, "gate", "resume", "work")
        # Then all of them run
        await dead(platform, 0)
