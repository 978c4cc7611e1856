"""A full disk, or a folder or file that is damaged or of a wrong kind: an error names it, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scenes.sqlite_groups import SCHEMA, SOON, add, grouped, opened, standing, texts

from tailrace.model.errors import NotConnected, StoreFull, TailraceError, Unavailable
from tailrace.stores.sqlite import connecting
from tailrace.stores.sqlite.file import AskAgain, SqliteFile


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
        waiting = asyncio.create_task(
            file.write_when(lambda c: "found" if "later" in texts(c) else AskAgain(60.0), 60.0)
        )
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
    await full(file)

    def copy(connection: sqlite3.Connection) -> list[str] | AskAgain:
        if not texts(connection):
            return AskAgain(60.0)
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
    await full(file)
    for _ in range(2):
        with pytest.raises(StoreFull, match="Free some space"):
            await file.write(add("x" * 100_000))
    assert await file.write(add("small")) == "small"


async def full(file: SqliteFile) -> None:
    """Keeps the file from growing from now on, until it is opened again."""
    pages = await file.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))
    await file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())


async def test_a_memory_that_cannot_be_read_again_ends_the_writer(file: SqliteFile) -> None:
    # Given a full disk, and a memory of the file that cannot be read again
    kept: list[str] = []
    deaths: asyncio.Queue[BaseException] = asyncio.Queue()
    unreadable = True

    def remember(text: str) -> Callable[[sqlite3.Connection], str]:
        def write(connection: sqlite3.Connection) -> str:
            kept.append(text)
            return add(text)(connection)

        return write

    def reload(connection: sqlite3.Connection) -> None:
        if unreadable:
            raise sqlite3.OperationalError("planted: disk I/O error")
        kept[:] = texts(connection)

    file.on_rollback(reload)
    file.on_death(deaths.put_nowait)
    await file.write(remember("kept"))
    await full(file)
    # When a group of writes does not fit, one of which waits for something to do
    async with grouped(file):
        waiting = asyncio.create_task(file.write_when(lambda c: AskAgain(60.0), 60.0))
        writes = [asyncio.create_task(file.write(remember(each))) for each in ("before", "x" * 100_000, "after")]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*writes, waiting, return_exceptions=True)
    # Then nobody writes on with what is not so: who waits, comes or keeps the file is told
    assert all(isinstance(answer, NotConnected) and "planted" in str(answer) for answer in answers)
    assert "planted" in str(await asyncio.wait_for(deaths.get(), SOON))
    with pytest.raises(NotConnected):
        await file.write(remember("more"))
    # And when it is opened again, memory is what the file is
    await file.close()
    unreadable = False
    await file.open()
    await file.write(remember("later"))
    assert kept == ["kept", "later"] == await file.read(texts)


async def test_a_group_that_never_began_leaves_memory_alone(file: SqliteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given another process that writes the file
    monkeypatch.setattr(connecting, "BUSY", 0.01)
    await file.close()
    await file.open()
    reloaded: list[list[str]] = []
    file.on_rollback(lambda connection: reloaded.append(texts(connection)))
    with contextlib.closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        # When a write is refused for it, Then nothing is read again: nothing was changed
        with pytest.raises(Unavailable, match="another process writes"):
            await file.write(add("refused"))
        assert reloaded == []
    assert await file.write(add("later")) == "later"


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Acts as nobody for this long, since root writes everywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


async def test_a_folder_that_is_missing_or_not_writable_is_named(tmp_path: Path) -> None:
    with pytest.raises(TailraceError, match="must exist and be writable") as refused:
        await SqliteFile(tmp_path / "missing" / "t.db", SCHEMA, name="test").open()
    assert str(tmp_path) in str(refused.value)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with as_ordinary_user(), pytest.raises(TailraceError, match="must exist and be writable"):
        await SqliteFile(closed / "t.db", SCHEMA, name="test").open()


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
