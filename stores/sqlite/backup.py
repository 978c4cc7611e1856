"""Copies of several SQLite files as of one moment, taken beside the process that writes them.

An item that moves from one file to another (for example when it is parked) is durable in the second file before it
leaves the first. So copies taken one after the other may lack it in both. Therefore all writers are blocked with
SQLite's own locks, a read transaction is opened on each file, the writers go on, and the copies are made from these
transactions. Writers are blocked for milliseconds, however large the files are.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from .errors import explained

#: Seconds to wait for a writer that has a transaction open.
PATIENCE = 30.0
#: Pages that are copied between two reports of progress: 4 MiB.
STEP = 1024


@contextlib.contextmanager
def snapshots(files: Sequence[Path]) -> Iterator[dict[Path, sqlite3.Connection]]:
    """Yields a connection to each file that sees it as of one moment, the same for all files. Raises the errors of a
    SqliteFile."""
    with contextlib.ExitStack() as stack:
        seen = {file: stack.enter_context(_connected(file)) for file in files}
        with contextlib.ExitStack() as held:
            for file in files:
                writer = held.enter_context(_connected(file))
                with _named(file):
                    writer.execute("BEGIN IMMEDIATE")
            for file, reader in seen.items():
                with _named(file):
                    reader.execute("BEGIN")
                    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield seen


def copy(reader: sqlite3.Connection, target: Path, advance: Callable[[int], None]) -> None:
    """Writes the content that the reader sees into a new file, durably, and readable only by this user. `advance`
    receives the number of bytes copied since its last call. The copy has its own mark, so that a run recognises it if
    it is put in the place of another file (restored.py)."""
    (size,) = reader.execute("PRAGMA page_size").fetchone()
    done = 0

    def told(_: int, left: int, total: int) -> None:
        nonlocal done
        advance((total - left - done) * size)
        done = total - left

    target.touch(mode=0o600, exist_ok=False)
    with _connected(target) as made, _named(target):
        reader.backup(made, pages=STEP, progress=told)
        made.execute("PRAGMA journal_mode=DELETE")
        made.execute(f"PRAGMA user_version={secrets.randbits(31)}")
    sync(target)


def sizes(readers: Mapping[Path, sqlite3.Connection]) -> int:
    """Bytes of the contents that these readers see."""
    pages = [(reader.execute("PRAGMA page_count"), reader.execute("PRAGMA page_size")) for reader in readers.values()]
    return sum(count.fetchone()[0] * size.fetchone()[0] for count, size in pages)


def fault_of(file: Path) -> str:
    """The fault of a file, after a look at all of it; empty: it has none."""
    try:
        with _connected(file) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else str(found)


def sync(path: Path) -> None:
    """Makes a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _connected(file: Path) -> Iterator[sqlite3.Connection]:
    with _named(file):
        connection = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE)
    try:
        yield connection
    finally:
        connection.close()  # ends its transaction and its locks


@contextlib.contextmanager
def _named(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise explained(error, f"{file}") from None
