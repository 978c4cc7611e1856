"""The embedded ledger obeys the laws of ledgers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.ledger.ledger import Ledger
from tailrace.stores.ledger.sqlite import SCHEMA, SqliteLedger
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.ledger import LedgerLaws


class TestSqliteLedger(LedgerLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Ledger]]:
        return SqliteBench[Ledger](folder, SCHEMA, lambda file, clock: SqliteLedger(file))
