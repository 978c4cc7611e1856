"""One SQLite file: commits are shared, failures are not, standing writes wait, and bounds hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tailrace.sdk.model.errors import InvalidRequest, NotConnected, Overloaded, StoreFull, TailraceError
from tailrace.stores import sqlite as subject
from tailrace.stores.sqlite import Again, SqliteFile

SCHEMA = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
SOON = 5.0


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    async with opened(tmp_path / "t.db") as file:
        yield file


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteFile]:
    file = SqliteFile(path, SCHEMA, name="test", synchronous="NORMAL")
    await file.open()
    try:
        yield file
    finally:
        await file.close()


def add(text: str) -> Callable[[sqlite3.Connection], str]:
    def write(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO t (text) VALUES (?)", (text,))
        return text

    return write


def texts(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM t ORDER BY id")]


class Held:
    """A write that keeps the writer busy until `release`, so that what comes meanwhile forms one group."""

    def __init__(self, file: SqliteFile, *, heavy: bool = False) -> None:
        self._began = threading.Event()
        self._go = threading.Event()
        self._last: Callable[[sqlite3.Connection], None] = lambda connection: None
        self._write = asyncio.create_task(file.write(self._hold, heavy=heavy))

    def _hold(self, connection: sqlite3.Connection) -> None:
        self._began.set()
        assert self._go.wait(SOON)
        self._last(connection)

    async def began(self) -> None:
        assert await asyncio.to_thread(self._began.wait, SOON)

    async def release(self, last: Callable[[sqlite3.Connection], None] = lambda connection: None) -> None:
        """Lets it end, after it did `last`."""
        self._last = last
        self._go.set()
        await self._write


@contextlib.asynccontextmanager
async def grouped(file: SqliteFile) -> AsyncIterator[None]:
    """Writes made inside wait for each other and go in one group."""
    held = Held(file)
    await held.began()
    yield
    await asyncio.sleep(0)
    await held.release()


async def commits(file: SqliteFile) -> list[str]:
    """What the writer says to SQLite from now on."""
    said: list[str] = []
    await file.write(lambda connection: connection.set_trace_callback(said.append))
    await file.write(lambda connection: None)
    said.clear()
    return said


async def test_writes_that_wait_share_one_commit_and_all_are_answered(file: SqliteFile) -> None:
    said = await commits(file)
    async with grouped(file):
        writes = [asyncio.create_task(file.write(add(str(number)))) for number in range(50)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*writes) == [str(number) for number in range(50)]
    assert said.count("COMMIT") == 2  # the one that was held, and the fifty
    assert await file.read(texts) == [str(number) for number in range(50)]


async def test_a_heavy_write_has_a_commit_to_itself_behind_the_light_ones(file: SqliteFile) -> None:
    said = await commits(file)
    # Given a heavy write that came first, and light ones behind it
    async with grouped(file):
        heavy = asyncio.create_task(file.write(add("heavy"), heavy=True))
        await asyncio.sleep(0)
        writes = [asyncio.create_task(file.write(add(str(number)))) for number in range(3)]
        await asyncio.sleep(0)

    # When all are answered, then the light ones shared the commit before its own
    await asyncio.gather(heavy, *writes)
    assert await file.read(texts) == ["0", "1", "2", "heavy"]
    assert said.count("COMMIT") == 3


async def test_a_heavy_write_leaves_what_stands_to_the_light_ones_that_wait(file: SqliteFile) -> None:
    # Given a claim that stands, and a heavy write during which something light comes
    waiting = await standing(file, take)
    held = Held(file, heavy=True)
    await held.began()
    light = asyncio.create_task(file.write(add("a")))
    await asyncio.sleep(0)

    # When the heavy one is done, then the claim is asked with the light one, in one commit
    said: list[str] = []
    await held.release(lambda connection: connection.set_trace_callback(said.append))
    assert await asyncio.wait_for(waiting, SOON) == ["a"]
    await light
    assert said.count("COMMIT") == 2


async def test_a_group_is_cut_at_its_bound(file: SqliteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_GROUP", 10)
    async with grouped(file):
        writes = [asyncio.create_task(file.write(add(str(number)))) for number in range(25)]
        await asyncio.sleep(0)
    assert len(await asyncio.gather(*writes)) == 25


@pytest.mark.parametrize("alone", [True, False])
async def test_a_write_that_fails_undoes_itself_alone(file: SqliteFile, alone: bool) -> None:
    def half(connection: sqlite3.Connection) -> None:
        add("half")(connection)
        raise InvalidRequest("no")

    def doubled(connection: sqlite3.Connection) -> None:
        add("before")(connection)
        add("before")(connection)

    if alone:
        with pytest.raises(InvalidRequest, match="no"):
            await file.write(half)
        assert await file.read(texts) == []
        return
    async with grouped(file):
        writes = [asyncio.create_task(file.write(each)) for each in (add("a"), half, add("b"), doubled, add("c"))]
        await asyncio.sleep(0)
    a, refused, b, failed, c = await asyncio.gather(*writes, return_exceptions=True)
    assert (a, b, c) == ("a", "b", "c")
    assert isinstance(refused, InvalidRequest)
    assert isinstance(failed, sqlite3.IntegrityError)
    assert await file.read(texts) == ["a", "b", "c"]


async def test_memory_is_read_again_after_an_undo_but_not_after_a_mere_refusal(file: SqliteFile) -> None:
    seen: list[list[str]] = []
    file.on_rollback(lambda connection: seen.append(texts(connection)))

    def refuse(_: sqlite3.Connection) -> None:
        raise InvalidRequest("no")

    def half(connection: sqlite3.Connection) -> None:
        add("half")(connection)
        raise InvalidRequest("no")

    await file.write(add("a"))
    with pytest.raises(InvalidRequest):
        await file.write(refuse)
    assert seen == []
    with pytest.raises(InvalidRequest):
        await file.write(half)
    assert seen  # once before it ran again apart from the others, once after
    assert all(each == ["a"] for each in seen)


async def test_what_was_answered_is_there_when_opened_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "t.db") as file:
        await file.write(add("a"))
    async with opened(tmp_path / "t.db") as file:
        assert await file.read(texts) == ["a"]
    assert not (tmp_path / "t.db-wal").exists()


async def standing(file: SqliteFile, fn: Callable[[sqlite3.Connection], list[str] | Again]) -> asyncio.Task[object]:
    """A standing write that has been asked once and waits now."""
    waiting: asyncio.Task[object] = asyncio.create_task(file.write_when(fn, 60.0))
    await asyncio.sleep(0)  # it is in the queue before the next
    await file.write(lambda connection: None)
    return waiting


def take(connection: sqlite3.Connection) -> list[str] | Again:
    """Takes all rows; nothing yet: ask again in a minute."""
    found = texts(connection)
    connection.execute("DELETE FROM t")
    return found or Again(60.0)


async def test_a_standing_write_sees_a_later_write_in_the_same_commit(file: SqliteFile) -> None:
    said = await commits(file)
    waiting = await standing(file, take)
    said.clear()
    await file.write(add("a"))
    assert await asyncio.wait_for(waiting, SOON) == ["a"]
    assert said.count("COMMIT") == 1
    assert await file.read(texts) == []


async def test_a_standing_write_that_finds_something_at_once_does_not_wait(file: SqliteFile) -> None:
    await file.write(add("a"))
    assert await asyncio.wait_for(file.write_when(take, 60.0), SOON) == ["a"]


async def test_standing_writes_are_served_in_turn_and_none_gets_anothers(file: SqliteFile) -> None:
    waiting = [await standing(file, take) for _ in range(2)]
    await file.write(add("a"))
    await file.write(add("b"))
    assert await asyncio.wait_for(asyncio.gather(*waiting), SOON) == [["a"], ["b"]]


async def test_a_standing_write_ends_empty_handed_when_its_time_is_over(file: SqliteFile) -> None:
    assert await asyncio.wait_for(file.write_when(take, 0.02), SOON) is None
    assert await asyncio.wait_for(file.write_when(take, 0.0), SOON) is None


async def test_a_standing_write_is_asked_again_when_it_said_so(file: SqliteFile) -> None:
    asked = 0

    def third_time(_: sqlite3.Connection) -> str | Again:
        nonlocal asked
        asked += 1
        return "found" if asked == 3 else Again(0.001)

    assert await asyncio.wait_for(file.write_when(third_time, 60.0), SOON) == "found"


async def test_a_standing_write_that_fails_is_answered_with_its_error(file: SqliteFile) -> None:
    def fail(_: sqlite3.Connection) -> Again:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await asyncio.wait_for(file.write_when(fail, 60.0), SOON)


async def test_a_standing_write_that_was_given_up_takes_nothing(file: SqliteFile) -> None:
    waiting = await standing(file, take)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await file.write(add("a"))
    assert await file.read(texts) == ["a"]


async def test_a_write_given_up_before_its_turn_is_not_made(file: SqliteFile) -> None:
    known: list[str] = []
    async with grouped(file):
        given_up = asyncio.create_task(file.write(add("a"), known.append))
        await asyncio.sleep(0)
        given_up.cancel()
    await file.write(add("b"))
    assert await file.read(texts) == ["b"]
    assert known == []


async def test_memory_hears_of_a_write_whose_caller_gave_up_too_late(file: SqliteFile) -> None:
    began, go = threading.Event(), threading.Event()
    known: list[str] = []

    def slow(connection: sqlite3.Connection) -> str:
        began.set()
        assert go.wait(SOON)
        return add("a")(connection)

    writing = asyncio.create_task(file.write(slow, known.append))
    assert await asyncio.to_thread(began.wait, SOON)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go.set()
    await file.write(add("b"))
    assert known == ["a"]


async def test_a_read_given_up_does_not_disturb_the_next(file: SqliteFile) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        began.set()
        assert go.wait(SOON)
        connection.execute("COMMIT")

    def look(connection: sqlite3.Connection) -> list[str]:
        connection.execute("BEGIN")
        found = texts(connection)
        connection.execute("COMMIT")
        return found

    reading = asyncio.create_task(file.read(slow))
    assert await asyncio.to_thread(began.wait, SOON)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    later = asyncio.create_task(file.read(look))
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.wait_for(later, SOON) == []


async def test_the_reader_cannot_write(file: SqliteFile) -> None:
    with pytest.raises(TailraceError, match="readonly"):
        await file.read(add("a"))


async def test_too_many_waiting_writes_are_refused_with_a_time_to_come_back(
    file: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_PENDING", 5)
    async with grouped(file):
        writes = [asyncio.create_task(file.write(add(str(number)))) for number in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await file.write(add("six"))
        assert refused.value.retry_after > 0
    await asyncio.gather(*writes)
    assert await file.write(add("six")) == "six"


async def test_a_full_disk_keeps_nothing_of_the_group_and_the_store_works_again_afterwards(file: SqliteFile) -> None:
    reloaded: list[list[str]] = []
    file.on_rollback(lambda connection: reloaded.append(texts(connection)))
    await file.write(add("kept"))
    # Given a file that may not grow
    pages = await file.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))
    await file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())

    def large(connection: sqlite3.Connection) -> None:
        for number in range(100):
            add(f"{number}" * 3000)(connection)

    # When one of a group does not fit
    async with grouped(file):
        waiting = asyncio.create_task(file.write_when(lambda c: "found" if "later" in texts(c) else Again(60.0), 60.0))
        writes = [asyncio.create_task(file.write(each)) for each in (add("before"), large, add("after"))]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*writes, return_exceptions=True)
    # Then all of it is refused by name, nothing of it is kept, and memory is read again
    assert all(isinstance(answer, StoreFull) for answer in answers)
    assert all("test store" in str(answer) and str(file.path) in str(answer) for answer in answers)
    assert await file.read(texts) == ["kept"]
    assert reloaded == [["kept"]]
    # And small writes go on, and whatever waited still waits
    assert await file.write(add("small")) == "small"
    await file.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    await file.write(large)
    await file.write(add("later"))
    assert await asyncio.wait_for(waiting, SOON) == "found"


async def test_a_standing_write_that_does_not_fit_does_not_stop_the_others_for_long(file: SqliteFile) -> None:
    # Given a full disk, and a standing write that needs room once there is something
    pages = await file.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))
    await file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    def copy(connection: sqlite3.Connection) -> list[str] | Again:
        if not texts(connection):
            return Again(60.0)
        add("x" * 100_000)(connection)
        return ["copied"]

    waiting = await standing(file, copy)
    # When there is, then it is told, and later writes go through
    with pytest.raises(StoreFull):
        await file.write(add("small"))
    with pytest.raises(StoreFull):
        await asyncio.wait_for(waiting, SOON)
    assert await file.write(add("small")) == "small"


async def test_a_full_disk_refuses_a_lone_write_too(file: SqliteFile) -> None:
    pages = await file.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))
    await file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    for _ in range(2):
        with pytest.raises(StoreFull, match="Free some space"):
            await file.write(add("x" * 100_000))
    assert await file.write(add("small")) == "small"


async def test_a_closed_file_says_so(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "t.db", SCHEMA, name="test")
    for _ in range(2):  # never opened, then closed
        with pytest.raises(NotConnected, match="test store is closed"):
            await file.write(add("a"))
        with pytest.raises(NotConnected):
            await file.write_when(take, 1.0)
        with pytest.raises(NotConnected):
            await file.read(texts)
        await file.close()
        await file.open()
        await file.close()
        await file.close()


async def test_closing_makes_what_waits_and_ends_what_stands(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "t.db", SCHEMA, name="test")
    await file.open()
    waiting = await standing(file, take)
    held = Held(file)
    await held.began()
    writes = [asyncio.create_task(file.write(add(str(number)))) for number in range(3)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(file.close())
    await asyncio.sleep(0)
    await held.release()
    await closing
    assert await asyncio.gather(*writes) == ["0", "1", "2"]
    # The standing one was asked a last time: either it took them, or it was told of the end
    (answer,) = await asyncio.gather(waiting, return_exceptions=True)
    async with opened(tmp_path / "t.db") as again:
        left = await again.read(texts)
    assert (answer, left) == (["0", "1", "2"], []) or (isinstance(answer, NotConnected) and left == ["0", "1", "2"])


async def test_a_folder_that_is_missing_or_not_writable_is_named(tmp_path: Path) -> None:
    with pytest.raises(TailraceError, match="must exist and be writable") as refused:
        await SqliteFile(tmp_path / "missing" / "t.db", SCHEMA, name="test").open()
    assert str(tmp_path) in str(refused.value)
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(TailraceError, match="must exist and be writable"):
        await SqliteFile(tmp_path / "closed" / "t.db", SCHEMA, name="test").open()


async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"not a database at all, but something dear to somebody" * 100)
    before = path.read_bytes()
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(TailraceError, match=r"damaged or is no tailrace store") as refused:
        await SqliteFile(path, SCHEMA, name="test").open()
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    assert len([*Path("/proc/self/fd").iterdir()]) == descriptors


async def test_a_damaged_page_is_an_error_of_the_write_that_meets_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    async with opened(path) as file:
        for number in range(200):
            await file.write(add(f"{number}" * 300))
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    async with opened(path) as file:
        with pytest.raises(TailraceError, match="damaged"):
            await file.read(texts)
        with pytest.raises(TailraceError, match="damaged"):
            await file.write(lambda connection: [add("new" * 2000 + str(number))(connection) for number in range(50)])
