"""The embedded ledger obeys the laws of ledgers."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.tries import Try
from tailrace.stores.ledger.ledger import Ledger
from tailrace.stores.ledger.sqlite import SCHEMA, SqliteLedger
from tailrace.stores.ledger.text import entry_text
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.ledger import LedgerLaws


class TestSqliteLedger(LedgerLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Ledger]]:
        return SqliteBench[Ledger](folder, SCHEMA, lambda file, clock: SqliteLedger(file))


async def test_a_file_of_an_older_version_is_read_and_written(tmp_path: Path) -> None:
    """Such a file has other blanks in its rows' texts, and an index that every write paid for."""
    parked = LedgerEntry(3, LedgerPlace.PARKED, 1, 1_700_000_000.25, 1, tries=(Try(1.5, "retry", 'said "é"'),))
    running = LedgerEntry(7, LedgerPlace.RUNNING, 1, fence=9, epoch=3)
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as former, former:
        former.executescript(SCHEMA)
        former.execute("CREATE INDEX ledger_places ON ledger (source, place, partition)")
        former.execute("INSERT INTO ledger_heads VALUES ('s', '', 5, 0)")
        former.executemany(
            "INSERT INTO ledger VALUES ('s', '', ?, ?, ?)",
            [(row.position, int(row.place), entry_text(row)) for row in (parked, running)],
        )
    async with SqliteBench[Ledger](tmp_path, SCHEMA, lambda file, clock: SqliteLedger(file)) as store:
        found = await store.engine.get("s", "", [3, 7])
        assert found == {3: parked, 7: running}
        run, done = parked._replace(place=LedgerPlace.RUNNING, fence=1), running._replace(place=LedgerPlace.DONE)
        assert await store.engine.write("s", "", [(found[3], run), (found[7], done)], None) == [run, done]
        assert await store.engine.passed("s", "", 5, 9) == 1
        assert await store.engine.open("s", "", 6) == []
        assert [row.entry for row in await store.engine.list("s", 9)] == [run]
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as file:
        assert "ledger_places" not in {name for _, name, *_ in file.execute("PRAGMA index_list(ledger)")}
