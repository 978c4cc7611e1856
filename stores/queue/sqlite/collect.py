"""What other processes' transactions left in the queue's own file becomes items, once those have committed.

They write to one table of it, the outbox, and to nothing that the writer keeps in memory. Whether somebody wrote is
what SQLite says by itself (`data_version`), so a look costs a few µs until somebody did.
"""

from __future__ import annotations

import logging
import sqlite3

import msgspec

from ....sdk.model.errors import Overloaded, UserError
from ...outbox.item import Row, item_of
from ..admission import check
from ..queue import NewItem
from .memory import Memory
from .rows import IDS, json_text
from .submit import submit

#: Rows that are moved in one step; about so many payload bytes.
MOST, MOST_BYTES = 256, 4 << 20
#: Seconds between looks, however often there is an occasion.
LOOK = 0.05

_READ = (
    "SELECT json_group_array(json_array(place, token, function, hex(payload), priority, collection, tenant, key,"
    " dedupe_key, headers, due_at - ?1, iif(expires_at > 0, expires_at - ?1, NULL))) FROM"
    " (SELECT * FROM (SELECT *, sum(length(payload)) OVER (ORDER BY place) - length(payload) AS before"
    " FROM (SELECT * FROM tailrace_outbox WHERE reason = '' ORDER BY place LIMIT ?2)) WHERE before < ?3)"
)
_decode = msgspec.json.Decoder().decode
_LOG = logging.getLogger("tailrace.stores")


class Collecting:
    """The outbox of one file. `max_waiting` and `max_payload` are the queue's bounds."""

    def __init__(self, max_waiting: int, max_payload: int) -> None:
        self._max_waiting = max_waiting
        self._max_payload = max_payload
        self._seen: int | None = None  # the data_version at which nothing was left; None: look
        self._looked = 0.0

    def again(self, connection: sqlite3.Connection) -> None:
        """Something was rolled back, perhaps what was moved."""
        self._seen = None

    def collect(self, connection: sqlite3.Connection, memory: Memory, monotonic: float, now: int) -> bool:
        """Moves committed rows, the oldest first; whether it looked and there may be more. `now` is µs since 1970."""
        if self._seen is not None and abs(monotonic - self._looked) < LOOK:
            return False
        self._looked = monotonic
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version == self._seen:
            return False
        (text,) = connection.execute(_READ, (now / 1e6, MOST, MOST_BYTES)).fetchone()
        found = _decode(text)
        if not found:
            self._seen = version
            return False
        items: list[NewItem] = []
        gone: list[int] = []
        for fields in found:
            row = Row(*fields)._replace(payload=bytes.fromhex(fields[3]))
            try:
                item = item_of(row, now / 1e6, token=False)
                check([item], self._max_payload)
            except UserError as error:
                _LOG.warning("row %d of the outbox was set aside: %s", row.place, error)
                connection.execute(
                    "UPDATE tailrace_outbox SET reason = ? WHERE place = ?", (str(error)[:500], row.place)
                )
            else:
                items.append(item)
                gone.append(row.place)
        try:
            submit(connection, memory, items, self._max_waiting, now)
        except Overloaded as error:
            _LOG.warning("%s; what transactions enqueued waits in the outbox", error)
            return False
        connection.execute(f"DELETE FROM tailrace_outbox WHERE place IN {IDS}", (json_text(gone),))
        self._seen = None
        return True
