"""The queue's tables in SQLite, and the numbers of lanes and kinds (kinds.py) in them.

The narrow `tasks` row is the one that is polled and moved; payloads are stored apart (ATF's two records). Constraints
are part of the schema, so that the database refuses a second writer that bypasses this code.

The claim is the lease: its row holds the next trigger (the lease's end) of all items claimed together. So a claim takes
an item out of the index of waiting items and puts it into no other, and a renewal is one row. When a holder renews only
some of its items the row is split.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ....model.tenant_key import MARK, tenant_key
from ....model.workload import Kind
from ...jobs.sqlite.schema import SCHEMA as JOBS
from ...outbox.sqlite_table import create
from ...sqlite.identity import SCHEMA as IDENTITY
from ..admission import SUBMISSION_PREFIX
from ..kinds import Kinds

_TABLES = """
CREATE TABLE IF NOT EXISTS lanes (
    lane INTEGER PRIMARY KEY,
    function TEXT NOT NULL,
    priority INTEGER NOT NULL,
    collection TEXT NOT NULL,
    UNIQUE (function, priority, collection)
) STRICT;
CREATE TABLE IF NOT EXISTS kinds (
    kind INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL REFERENCES lanes (lane),
    tenant TEXT NOT NULL,
    UNIQUE (lane, tenant)
) STRICT;
CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4 OR state BETWEEN 10 AND 14), -- a list costs 3 µs a row
    next_trigger INTEGER CHECK ((next_trigger IS NOT NULL) = (state < 2)),
    fence INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    throttles INTEGER NOT NULL DEFAULT 0,
    flags INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL,
    ended INTEGER CHECK ((ended IS NULL) = (state < 10))
) STRICT;
CREATE INDEX IF NOT EXISTS tasks_live ON tasks (lane, next_trigger) WHERE next_trigger IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_tried ON tasks (lane, attempts) WHERE attempts > 0 AND ended IS NULL;
CREATE TABLE IF NOT EXISTS claims (
    number INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL,
    until INTEGER NOT NULL,
    ids TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS lease_clock ( -- see stores/queue/lease_clock.py; `until` of a claim is by this boot's clock
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot TEXT NOT NULL,
    ahead INTEGER NOT NULL,
    wall INTEGER NOT NULL,
    longest INTEGER NOT NULL CHECK (longest >= 0),
    closed INTEGER NOT NULL
) STRICT;
DROP TABLE IF EXISTS clock; -- of versions whose leases ended by the wall clock
CREATE TABLE IF NOT EXISTS entities (
    id INTEGER PRIMARY KEY,
    payload BLOB NOT NULL,
    key TEXT NOT NULL DEFAULT '',
    headers TEXT NOT NULL DEFAULT '',
    expires_at REAL NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    progress TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE IF NOT EXISTS tries ( -- how attempts went that were not the last
    id INTEGER PRIMARY KEY,
    tries TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS history ( -- characters of what is kept beside the rows of what has ended
    one INTEGER PRIMARY KEY CHECK (one = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO history SELECT 1, 0 WHERE NOT EXISTS (SELECT 1 FROM history);
CREATE TABLE IF NOT EXISTS callbacks ( -- of items that have not ended: the workloads that tell of it, around the event
    item INTEGER PRIMARY KEY,
    whose INTEGER NOT NULL, -- the item's kind
    kind INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    suffix BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS keyed (
    key TEXT NOT NULL,
    id INTEGER NOT NULL UNIQUE,
    due INTEGER NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dedupe (
    function TEXT NOT NULL,
    key TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (function, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dedupe_ids ON dedupe (id);
CREATE TABLE IF NOT EXISTS runs ( -- dedupe keys that rise together with their items' ids: see dedupe.py
    function TEXT NOT NULL,
    first TEXT NOT NULL,
    last TEXT NOT NULL CHECK (last >= first),
    id INTEGER NOT NULL,
    last_id INTEGER NOT NULL UNIQUE CHECK (last_id >= id),
    PRIMARY KEY (function, first)
) STRICT, WITHOUT ROWID;
"""
#: Holds one row once the keys of tenants are their own (tenant_keys.py).
_OWN_KEYS = "CREATE TABLE IF NOT EXISTS own_keys (one INTEGER PRIMARY KEY CHECK (one = 1)) STRICT;\n"
SCHEMA = _OWN_KEYS + _TABLES + "".join(f"{statement};\n" for statement in create()) + IDENTITY + JOBS

#: A task as claims read it, and the index of each column in it.
TaskRow = tuple[int, int, int, int, int, int, int, int, int, int]
ID: Final = 0
KIND: Final = 1
STATE: Final = 2
FENCE: Final = 3
ATTEMPTS: Final = 4
CRASHES: Final = 5
FLAGS: Final = 6
SIZE: Final = 7
TRIGGER: Final = 8
LANE: Final = 9

#: Flags of a task.
HAS_EXTRA = 1  # key, headers, expiry or progress in its entity
CANCEL = 2  # its holder is to be told
KEYED = 4  # in `keyed`; waits for the older ones of its key
DEDUPED = 8  # has a dedupe key
JOB = 16  # is an item of a job

#: A subquery for conditions: the numbers of a JSON array.
IDS = "(SELECT value FROM json_each(?))"

#: Next trigger of an item that waits for an older one of its key: it never becomes due by itself.
BLOCKED = (1 << 62) - 1
#: Next trigger of an item whose job is paused: it is not due until the job is resumed.
PAUSED = BLOCKED + 1

_encode = msgspec.json.Encoder().encode


def json_text(value: Any) -> str:
    """A value as an argument for `json_each`."""
    return _encode(value).decode()


def one_or_many(numbers: Sequence[int]) -> tuple[str, int | str]:
    """A condition on ids, and its one argument: for a single id SQLite need not parse JSON."""
    return ("= ?", numbers[0]) if len(numbers) == 1 else (f"IN {IDS}", json_text(numbers))


class SqliteKinds(Kinds):
    """Lanes and kinds, read once and then extended by the writer; other threads may look numbers up. `reload` forgets
    numbers that a failed transaction gave out."""

    def reload(self, connection: sqlite3.Connection) -> None:
        """Reads the committed numbers. If some are known already, only forgets those that were not committed."""
        if self.kinds:
            (last_kind,) = connection.execute("SELECT coalesce(max(kind), 0) FROM kinds").fetchone()
            (last_lane,) = connection.execute("SELECT coalesce(max(lane), 0) FROM lanes").fetchone()
            self.forget_above(last_kind, last_lane)
            return
        fresh = SqliteKinds()
        for lane, function, priority, collection in connection.execute("SELECT * FROM lanes").fetchall():
            fresh.learn_lane(lane, (function, priority, collection))
        for kind, lane, tenant in connection.execute("SELECT * FROM kinds ORDER BY kind").fetchall():
            fresh.learn(kind, lane, tenant)
        self.__dict__.update(fresh.__dict__)

    def number(self, connection: sqlite3.Connection, kind: Kind) -> int:
        """The number of a kind; a new kind gets one."""
        found = self.numbers.get(kind)
        if found is not None:
            return found
        address = (kind.function, int(kind.priority), kind.collection)
        lane = self.lane_numbers.get(address)
        if lane is None:
            lane = int(
                connection.execute(
                    "INSERT INTO lanes (function, priority, collection) VALUES (?, ?, ?) RETURNING lane", address
                ).fetchone()[0]
            )
            self.learn_lane(lane, address)
        (found,) = connection.execute(
            "INSERT INTO kinds (lane, tenant) VALUES (?, ?) RETURNING kind", (lane, kind.tenant)
        ).fetchone()
        self.learn(int(found), lane, kind.tenant)
        return int(found)


# Keys of tenants in a file that was made before tenants had keys of their own: rewritten once.

_TENANT = "JOIN kinds AS k ON k.kind = t.kind WHERE (k.tenant <> '' OR substr(d.key, 1, 1) = ?)"
_DEDUPE = (
    f"SELECT k.tenant, d.key, d.id FROM dedupe AS d JOIN tasks AS t ON t.id = d.id {_TENANT}"
    f" AND d.key NOT LIKE '{SUBMISSION_PREFIX}%'"
)
_KEYED = f"SELECT k.tenant, d.key, d.id FROM keyed AS d JOIN tasks AS t ON t.id = d.id {_TENANT}"
_TREES = (
    f"SELECT k.tenant, d.key, d.tree FROM job_trees AS d JOIN jobs AS t ON t.tree = d.tree AND t.place = 0 {_TENANT}"
)


def own_keys(connection: sqlite3.Connection) -> None:
    """Makes each key that its tenant's own which was kept as it was given. Items that waited behind another tenant's
    are due. Harmless when repeated."""
    if connection.execute("SELECT 1 FROM own_keys").fetchone() is not None:
        return
    for table, column, select in (
        ("dedupe", "id", _DEDUPE),
        ("keyed", "id", _KEYED),
        ("job_trees", "tree", f"{_TREES} AND d.key <> ''"),
    ):
        rows = connection.execute(select, (MARK,)).fetchall()
        own = [(tenant_key(tenant, key), number) for tenant, key, number in rows]
        connection.executemany(f"UPDATE {table} SET key = ? WHERE {column} = ?", own)
        if table == "keyed":
            _free(connection, {key for _, key, _ in rows} | {key for key, _ in own})
    connection.execute("INSERT INTO own_keys VALUES (1)")


def _free(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Lets the first item of each key run when it is due."""
    for key in keys:
        connection.execute(
            "UPDATE tasks SET next_trigger = h.due FROM (SELECT id, due FROM keyed WHERE key = ? ORDER BY id LIMIT 1)"
            " AS h WHERE tasks.id = h.id AND tasks.next_trigger = ?",
            (key, BLOCKED),
        )
