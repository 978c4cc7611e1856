"""The embedded state: one SQLite file, which only its node uses."""

from __future__ import annotations

import sqlite3

from ...foundation.clock import Clock
from ..checkpoints import sqlite as checkpoints
from ..config import StoresConfig
from ..control import sqlite as control
from ..dead_letters import sqlite as dead_letters
from ..drops import sqlite as drops
from ..inventory import sqlite as inventory
from ..ledger import sqlite as ledger
from ..ownership import sqlite as ownership
from ..replays import sqlite as replays
from ..results import sqlite as results
from ..schedules import sqlite as schedules
from ..segments import sqlite as segments
from ..sqlite.file import SqliteFile
from ..trusted_time import TrustedTime
from ..usage import sqlite as usage
from .state import StateStores

SCHEMA = (
    checkpoints.SCHEMA
    + control.SCHEMA
    + dead_letters.SCHEMA
    + inventory.SCHEMA
    + ledger.SCHEMA
    + ownership.SCHEMA
    + drops.SCHEMA
    + replays.SCHEMA
    + results.SCHEMA
    + schedules.SCHEMA
    + segments.SCHEMA
    + usage.SCHEMA
)

#: The name, among the checkpoints, of a note about the log of the delay service. No tailer can have this name.
DELAY_LOG_NOTE = "@delay-log"

#: Counts of data that nobody would find any more if the state were elsewhere. Data that is made anew (functions,
#: owners) or kept only for a time (results, replays that are over) is left out.
_KEPT = {
    "checkpoints": f"SELECT count(*) FROM checkpoint_marks WHERE source <> '{DELAY_LOG_NOTE}'",
    "rows of failed items": "SELECT count(*) FROM ledger",
    "dead letters": "SELECT count(*) FROM dead_letters",
    "gates": "SELECT count(*) FROM gates_by_name",
    "quotas": "SELECT coalesce((SELECT json_array_length(quotas) FROM quota_changes ORDER BY version DESC LIMIT 1),"
    " (SELECT count(*) FROM quotas))",
    "schedules": "SELECT count(*) FROM schedules",
    "replays under way": "SELECT count(*) FROM replays WHERE NOT is_over",
    "ranges of drops": "SELECT count(*) FROM drops",
    "objects that were listed": "SELECT count(*) FROM inventory",
    "segments": "SELECT count(*) FROM segments",
}


class SqliteGround:
    """The base of the embedded state: its file, and the owners' store, which is told when no stream may be taken."""

    def __init__(self, file: SqliteFile, owners: ownership.SqliteOwnership) -> None:
        self._file = file
        self._owners = owners

    async def open(self) -> None:
        await self._file.open()

    async def rebind(self, what: str, seen: str, text: str) -> str:
        return text  # both are in one data directory

    def stay_quiet(self, until: float) -> None:
        self._owners.quiet_until = until

    async def sweep(self) -> int:
        return 0  # each write forgets a little

    async def close(self) -> None:
        await self._file.close()


def state_in(file: SqliteFile, config: StoresConfig, clock: Clock, trusted: TrustedTime) -> StateStores:
    """The state in a file with SCHEMA; the state opens and closes the file."""
    owners = ownership.SqliteOwnership(file, clock)
    return StateStores(
        ground=SqliteGround(file, owners),
        checkpoints=checkpoints.SqliteCheckpoints(file),
        control=control.SqliteControl(file, clock),
        dead_letters=dead_letters.SqliteDeadLetters(file, config.max_dead_letters),
        drops=drops.SqliteDrops(file),
        inventory=inventory.SqliteInventory(file),
        ledger=ledger.SqliteLedger(file),
        ownership=owners,
        replays=replays.SqliteReplays(file),
        results=results.SqliteResults(
            file, clock, retention=config.result_retention, max_bytes=config.result_bytes, trusted=trusted
        ),
        schedules=schedules.SqliteSchedules(file),
        segments=segments.SqliteSegments(file),
        usage=usage.SqliteUsage(file),
    )


async def what_rests_in(file: SqliteFile) -> dict[str, int]:
    """The amount of each kind in an open file that a state elsewhere would lack; kinds without any are left out."""

    def count(connection: sqlite3.Connection) -> dict[str, int]:
        return {name: connection.execute(statement).fetchone()[0] for name, statement in _KEPT.items()}

    return {name: number for name, number in (await file.read(count)).items() if number}
