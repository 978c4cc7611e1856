"""An SQLite file that is opened and closed while somebody gives up: nobody keeps it who is not known, and no run hears
of another one's death."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from scenes.sqlite_groups import SCHEMA, SOON, Held, add, opened, texts

from tailrace.stores.sqlite.connecting import Connecting
from tailrace.stores.sqlite.file import SqliteFile


async def test_an_opening_that_was_given_up_leaves_the_file_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a file that takes its time to be opened
    began, go = threading.Event(), threading.Event()
    connect = Connecting._connect

    def slow(connecting: Connecting) -> sqlite3.Connection:
        began.set()
        assert go.wait(SOON)
        return connect(connecting)

    monkeypatch.setattr(Connecting, "_connect", slow)
    file = SqliteFile(tmp_path / "t.db", SCHEMA, name="test")
    opening = asyncio.create_task(file.open())
    assert await asyncio.to_thread(began.wait, SOON)
    # When whoever opens it gives up meanwhile, and closes it
    opening.cancel()
    asyncio.get_running_loop().call_soon(go.set)
    with pytest.raises(asyncio.CancelledError):
        await opening
    await file.close()
    # Then nobody has it open: another connection is the only one, and takes the write-ahead log with it
    with sqlite3.connect(tmp_path / "t.db", timeout=0) as other:
        other.execute("PRAGMA integrity_check")
    other.close()
    assert not (tmp_path / "t.db-wal").exists()


async def test_a_closing_that_was_given_up_is_waited_for_by_the_next(tmp_path: Path) -> None:
    # Given a writer that is in the middle of something
    file = SqliteFile(tmp_path / "t.db", SCHEMA, name="test")
    await file.open()
    held = Held(file)
    await held.began()
    # When its closing is given up, and another one begins
    first = asyncio.create_task(file.close())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(file.close())
    await asyncio.sleep(0)
    # Then that one waits for the writer, so that two never write
    ended, _ = await asyncio.wait([second], timeout=0.05)
    assert not ended
    await held.release()
    await second
    async with opened(tmp_path / "t.db") as again:
        assert await again.write(add("a")) == "a"
        assert await again.read(texts) == ["a"]


async def test_the_death_of_a_writer_whose_file_was_closed_meanwhile_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a writer of which nobody heard yet that it died
    dead, deaths = threading.Event(), list[BaseException]()
    die = SqliteFile._die

    def dies(file: SqliteFile, *given: object) -> None:
        die(file, *given)  # type: ignore[arg-type]
        dead.set()

    def ends(_: sqlite3.Connection) -> None:
        raise SystemExit("planted")

    monkeypatch.setattr(SqliteFile, "_die", dies)
    file = SqliteFile(tmp_path / "t.db", SCHEMA, name="test")
    file.on_death(deaths.append)
    await file.open()
    writing = asyncio.create_task(file.write(ends))
    await asyncio.sleep(0)
    assert dead.wait(SOON)  # the loop stands meanwhile
    # When its file is closed, and opened again
    await file.close()
    await file.open()
    await asyncio.gather(writing, return_exceptions=True)
    # Then the new run is not told of the death of the old one
    assert await file.write(add("a")) == "a"
    assert deaths == []
    await file.close()
