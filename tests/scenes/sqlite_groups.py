"""An SQLite file of lines of text, and writes that wait for each other so that they go in one group."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from tailrace.stores.sqlite.file import AskAgain, SqliteFile

SCHEMA = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
SOON = 5.0


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
    """A write that keeps the writer busy until `release`, so that writes that come meanwhile form one group."""

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
        """Lets the write end, after it did `last`."""
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
    """Statements that the writer gives to SQLite from now on."""
    said: list[str] = []
    await file.write(lambda connection: connection.set_trace_callback(said.append))
    await file.write(lambda connection: None)
    said.clear()
    return said


async def standing(file: SqliteFile, fn: Callable[[sqlite3.Connection], list[str] | AskAgain]) -> asyncio.Task[object]:
    """A standing write that has been asked once and waits now."""
    waiting: asyncio.Task[object] = asyncio.create_task(file.write_when(fn, 60.0))
    await asyncio.sleep(0)  # it is in the queue before the next
    await file.write(lambda connection: None)
    return waiting


def take(connection: sqlite3.Connection) -> list[str] | AskAgain:
    """Takes all rows; nothing yet: ask again in a minute."""
    found = texts(connection)
    connection.execute("DELETE FROM t")
    return found or AskAgain(60.0)
