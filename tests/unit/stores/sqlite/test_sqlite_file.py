"""One SQLite file: commits are shared, failures are not, writes that were given up are not made, and bounds hold."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from scenes.sqlite_groups import SCHEMA, SOON, Held, add, commits, grouped, opened, standing, take, texts

from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded, TailraceError
from tailrace.stores.sqlite import file as subject
from tailrace.stores.sqlite.file import SqliteFile


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
