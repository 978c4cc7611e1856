"""Collection of the outbox in the queue's own file: rows that other processes' transactions left there become items
once those transactions have committed.

Other processes write only to the outbox table, and to nothing that the writer keeps in memory. SQLite tells by itself
whether another connection wrote (`data_version`), so a look costs a few µs until one did. A bad row, or a damaged
table, delays nothing else: claims go on.
"""

from __future__ import annotations

import logging
import sqlite3

import msgspec

from ....model.errors import Overloaded, UserError
from ....model.linger import OUTBOX_LOOKS
from ...outbox.item import OutboxRow, item_of, reason_text
from ...outbox.sqlite_table import any_text
from ...sqlite.errors import is_of_a_row
from ..admission import check
from ..queue import NewItem
from .memory import Memory
from .rows import IDS, json_text
from .submit import submit

#: Most rows that are moved in one step, and about as many payload bytes.
MOST, MOST_BYTES = 256, 4 << 20
#: Most rows of one step that may fail while they are stored: after each the memory is read again.
MOST_FAILING = 4
#: Seconds between two looks while the queue is full: each look reads and checks rows that it cannot move.
FULL_PAUSE = 1.0

_OLDEST = (
    "(SELECT * FROM (SELECT *, sum(length(payload)) OVER (ORDER BY place) - length(payload) AS before"
    " FROM (SELECT * FROM tailrace_outbox WHERE reason = '' ORDER BY place LIMIT ?2)) WHERE before < ?3)"
)
_TIMES = "due_at - ?1, iif(expires_at > 0, expires_at - ?1, NULL)"
_READ = (
    "SELECT json_group_array(json_array(place, token, function, hex(payload), priority, collection, tenant, key,"
    f" dedupe_key, headers, {_TIMES})) FROM {_OLDEST}"
)
_READ_EACH = (
    "SELECT place, token, function, payload, priority, collection, tenant, key, dedupe_key, headers,"
    f" {_TIMES} FROM {_OLDEST} ORDER BY place"
)
_decode = msgspec.json.Decoder().decode
_LOG = logging.getLogger("tailrace.stores")


class SqliteCollecting:
    """The collector of one file's outbox. `max_waiting` and `max_payload` are the queue's bounds."""

    def __init__(self, max_waiting: int, max_payload: int) -> None:
        self._max_waiting = max_waiting
        self._max_payload = max_payload
        self._seen: int | None = None  # the data_version at which nothing was left; None: look
        self._looked = 0.0
        self._full = False  # the queue had no room at the last look: the next one comes later, and logs nothing

    def again(self, connection: sqlite3.Connection) -> None:
        """Makes the next call look: a rollback may have undone moves."""
        self._seen = None

    def collect(self, connection: sqlite3.Connection, memory: Memory, monotonic: float, now: int) -> bool:
        """Moves committed rows, the oldest first. Returns True if it looked and there may be more. `now` is µs since
        1970."""
        if self._seen is not None and OUTBOX_LOOKS.rest(self._looked, monotonic) > 0:
            return False
        if self._full and monotonic < self._looked + FULL_PAUSE:
            return False
        self._looked = monotonic
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version == self._seen:
            return False
        rows = _rows(connection, now)
        if not rows:
            self._seen = version
            return False
        refused: dict[int, str] = {}
        items: dict[int, NewItem] = {}
        for row in rows:
            try:
                item = item_of(row, now / 1e6, token=False)
                check([item], self._max_payload)
            except UserError as error:
                refused[row.place] = reason_text(error)
            else:
                items[row.place] = item
        try:
            self._store(connection, memory, items, refused, now)
        except Overloaded as error:
            if not self._full:
                _LOG.warning("%s; workloads that transactions enqueued wait in the outbox", error)
            self._full = True
            return False
        self._full = False
        if refused:
            first, reason = next(iter(refused.items()))
            _LOG.warning("%d rows of the outbox were set aside; row %d: %s", len(refused), first, reason)
            values = [(reason, place) for place, reason in refused.items()]
            connection.executemany("UPDATE tailrace_outbox SET reason = ? WHERE place = ?", values)
        connection.execute(f"DELETE FROM tailrace_outbox WHERE place IN {IDS}", (json_text([*items]),))
        self._seen = None
        return True

    def _store(
        self,
        connection: sqlite3.Connection,
        memory: Memory,
        items: dict[int, NewItem],
        refused: dict[int, str],
        now: int,
    ) -> None:
        """Stores all items at once. If an item makes that fail, stores each alone, in order: items that fail move to
        `refused`, and items that are not tried any more leave `items`. Raises Overloaded with nothing stored."""
        connection.execute("SAVEPOINT outbox")
        try:
            submit(connection, memory, [*items.values()], self._max_waiting, now)
        except Overloaded:
            connection.execute("RELEASE outbox")
            raise
        except Exception as error:
            if not is_of_a_row(error):
                raise
            _undo(connection, memory)
            left, failing = [*items.items()], 0
            items.clear()
            for place, item in left:
                try:
                    submit(connection, memory, [item], self._max_waiting, now)
                except Exception as error:
                    if not is_of_a_row(error):
                        raise
                    _undo(connection, memory)
                    refused[place] = reason_text(error)
                    failing += 1
                    if failing == MOST_FAILING:
                        break
                else:
                    items[place] = item
                    connection.execute("RELEASE outbox")
                    connection.execute("SAVEPOINT outbox")
        connection.execute("RELEASE outbox")


def _rows(connection: sqlite3.Connection, now: int) -> list[OutboxRow]:
    """Reads the oldest rows: in one step of SQLite, unless one of them has a value that JSON cannot hold or a text that
    is not valid."""
    bounds = (now / 1e6, MOST, MOST_BYTES)
    try:
        (text,) = connection.execute(_READ, bounds).fetchone()
        found = _decode(text)
    except (sqlite3.Error, ValueError) as error:
        if not is_of_a_row(error):
            raise
        connection.text_factory = any_text
        try:
            return [OutboxRow(*fields) for fields in connection.execute(_READ_EACH, bounds).fetchall()]
        finally:
            connection.text_factory = str
    return [row._replace(payload=bytes.fromhex(fields[3])) for fields in found for row in (OutboxRow(*fields),)]


def _undo(connection: sqlite3.Connection, memory: Memory) -> None:
    connection.execute("ROLLBACK TO outbox")
    memory.reload(connection)
