"""The queue's tables in SQLite and the rows' numbers: lanes, kinds and ids.

A *lane* here is one ⟨function, priority, collection⟩: what a lease visits. The narrow `tasks` row is what is polled and
moved; payloads rest apart (ATF's two records, R9). Constraints stand in the schema, so that a second writer that
bypasses this code is refused by the database.

The claim is the lease: its row holds the next trigger (the lease's end) of all the items claimed together, so that a
claim takes an item out of the index of what waits and puts it into no other, and a renewal is one row. A holder that
renews only some of its items splits the row.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from ...sdk.model.demand import Cell
from ...sdk.model.workload import Kind

SCHEMA = """
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
CREATE TABLE IF NOT EXISTS claims (
    number INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL,
    until INTEGER NOT NULL,
    ids TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS clock (ahead INTEGER NOT NULL) STRICT; -- see sqlite_claims.keep_time
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
"""

#: Flags of a task.
HAS_EXTRA = 1  # key, headers, expiry or progress in its entity
CANCEL = 2  # its holder is to be told
KEYED = 4  # in `keyed`; waits for the older ones of its key
DEDUPED = 8  # in `dedupe`

#: The rows of a JSON array of numbers, in a condition.
IDS = "(SELECT value FROM json_each(?))"

#: Next trigger of an item that waits for an older one of its key: never by itself.
BLOCKED = (1 << 62) - 1

_encode = msgspec.json.Encoder().encode
_EPOCH_2020_MS = 1_577_836_800_000


class Ids:
    """63-bit ids that rise: 41 bits of milliseconds since 2020, 22 bits that start at random within each. Ids of
    several writers never meet but by a one in two million chance within a millisecond, and then the table refuses."""

    def __init__(self, last: int) -> None:
        self.last = last

    def take(self, count: int, now_ms: int) -> list[int]:
        """The next `count` ids."""
        first = max(self.last + 1, (now_ms - _EPOCH_2020_MS) << 22 | random.getrandbits(21))
        self.last = first + count - 1
        return list(range(first, first + count))


def json_text(value: Any) -> str:
    """A statement's argument for `json_each`."""
    return _encode(value).decode()


def one_or_many(numbers: Sequence[int]) -> tuple[str, int | str]:
    """A condition on ids, with its one argument: for a lone one SQLite need not read JSON."""
    return ("= ?", numbers[0]) if len(numbers) == 1 else (f"IN {IDS}", json_text(numbers))


def id_text(number: int) -> str:
    """The id that users see: 16 hexadecimal digits."""
    return f"{number:016x}"


def id_number(text: str) -> int:
    """The inverse; -1 for text that is no id of this store."""
    if len(text) != 16 or not (text.isascii() and text.isalnum()):
        return -1
    try:
        number = int(text, 16)
    except ValueError:
        return -1
    return number if number < 1 << 63 else -1


def created_at(number: int) -> float:
    """When an item was submitted, wall clock seconds: its id says so."""
    return ((number >> 22) + _EPOCH_2020_MS) / 1000


def first_id(ms: int) -> int:
    """The lowest id of an item made at that time, milliseconds since 1970, or later."""
    return max(0, ms - _EPOCH_2020_MS) << 22


class Kinds:
    """Numbers of lanes and kinds, read once and grown in the writer; other threads may look numbers up.

    A number that a failed transaction gave out is forgotten by `reload`.
    """

    def __init__(self) -> None:
        self.lanes: dict[int, tuple[str, int, str]] = {}  # lane → function, priority, collection
        self.kinds: dict[int, Kind] = {}
        self.cells: dict[int, Cell] = {}  # lane → its cell
        self.lane_of: dict[int, int] = {}
        self.of_lane: dict[int, list[int]] = {}  # lane → its kinds
        self._numbers: dict[Kind, int] = {}
        self._lane_numbers: dict[tuple[str, int, str], int] = {}

    def reload(self, connection: sqlite3.Connection) -> None:
        """Reads what is committed."""
        fresh = Kinds()
        for lane, function, priority, collection in connection.execute("SELECT * FROM lanes").fetchall():
            fresh.lanes[lane] = (function, priority, collection)
            fresh.cells[lane] = Cell(function, priority)
            fresh._lane_numbers[function, priority, collection] = lane
        for kind, lane, tenant in connection.execute("SELECT * FROM kinds").fetchall():
            function, priority, collection = fresh.lanes[lane]
            fresh._learn(kind, lane, Kind(function, priority, collection, tenant))
        self.__dict__.update(fresh.__dict__)

    def number(self, connection: sqlite3.Connection, kind: Kind) -> int:
        """A kind's number, made when new."""
        found = self._numbers.get(kind)
        if found is not None:
            return found
        address = (kind.function, int(kind.priority), kind.collection)
        lane = self._lane_numbers.get(address)
        if lane is None:
            lane = int(
                connection.execute(
                    "INSERT INTO lanes (function, priority, collection) VALUES (?, ?, ?) RETURNING lane", address
                ).fetchone()[0]
            )
            self.lanes[lane] = address
            self.cells[lane] = Cell(kind.function, int(kind.priority))
            self._lane_numbers[address] = lane
        (found,) = connection.execute(
            "INSERT INTO kinds (lane, tenant) VALUES (?, ?) RETURNING kind", (lane, kind.tenant)
        ).fetchone()
        self._learn(int(found), lane, Kind(*address, kind.tenant))
        return int(found)

    def _learn(self, number: int, lane: int, kind: Kind) -> None:
        self.kinds[number] = kind
        self.lane_of[number] = lane
        self.of_lane.setdefault(lane, []).append(number)
        self._numbers[kind] = number
