"""The embedded dead letters obey the laws of dead letters."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tailrace.model.dead_letter import EVERY
from tailrace.stores.dead_letters import sqlite as dead_letters_sqlite
from tailrace.stores.dead_letters.dead_letters import DeadLetters
from tailrace.stores.dead_letters.sqlite import SCHEMA, SqliteDeadLetters
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.dead_letters import BOUND, DeadLetterLaws, letter
from tailrace.testing.conformance.embedded import SqliteBench


class TestSqliteDeadLetters(DeadLetterLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[DeadLetters]]:
        return SqliteBench[DeadLetters](folder, SCHEMA, lambda file, clock: SqliteDeadLetters(file, BOUND))


async def test_positions_whose_letters_went_are_bounded_and_stay_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters_sqlite, "GONE", 10)
    bench = SqliteBench[DeadLetters](tmp_path, SCHEMA, lambda file, clock: SqliteDeadLetters(file, BOUND))
    async with bench as store:
        for number in range(100):
            await store.engine.add([letter(f"t/p/{number}", partition="p", position=number)])
            [one] = await store.engine.list(EVERY, 1)
            await store.engine.remove([one.number])
            assert await store.engine.positions("t") == {"p": number + 1}
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as file:
        rows = file.execute("SELECT count(*) FROM dead_letters_gone").fetchone()
    assert rows[0] <= 10


async def test_a_file_of_before_has_its_rooms_counted_once(tmp_path: Path) -> None:
    # Given a file with letters and without rooms
    bench = SqliteBench[DeadLetters](tmp_path, SCHEMA, lambda file, clock: SqliteDeadLetters(file, 3))
    async with bench as store:
        await store.engine.add([letter("a"), letter("b"), letter("c", "g")])
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as file:
        for what in ("TRIGGER dead_letter_added", "TRIGGER dead_letter_removed", "TABLE dead_letter_rooms"):
            file.execute(f"DROP {what}")
    # When it is opened, once and again, Then each room has what it has
    async with SqliteBench[DeadLetters](tmp_path, SCHEMA, lambda file, clock: SqliteDeadLetters(file, 3)) as store:
        for _ in range(2):
            assert [room.held for room in await store.engine.rooms([("f", ""), ("g", "")])] == [2, 1]
            await store.reopen()
        assert await store.engine.add([letter("d"), letter("e"), letter("a")]) == ["e"]
