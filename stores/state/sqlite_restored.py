"""No owner from before a store was put back from a copy goes on in it.

A tailer that lives through the restore of a store elsewhere knows of settlements, rows and parked items that the copy
does not have. So before anything is served the epochs of all streams rise, in their rows, checkpoints and ledgers, in
one transaction: whoever had a stream is refused as stale, and begins anew with what the copy says.

A copy that comes due carries no epoch when it writes its row. Such a tailer may still have one of which the delay
service that was put back knows nothing: were it to start from a row that says PARKING, the item's source would leave it
to that copy, and nobody would run it again. So the rows of what waits bear the new epoch too, and an older one starts
none of them.
"""

from __future__ import annotations

import json
import sqlite3

from ...model.ledger import LedgerPlace
from ..ledger.text import entry_of, entry_text
from ..ownership.epochs import EPOCHS_FROM, next_epoch
from ..sqlite.identity import note_height

#: Checkpoints and heads of ledgers that belong to an owner's row; a source's own counts have no epochs to rise.
_CHECKPOINTS = "source IN (SELECT iif(partition = '', source, source || '/' || partition) FROM ownership)"
_HEADS = "source IN (SELECT source FROM ownership)"
#: What is due is one source for all, whose owner starts the copies.
_DUE = "due"


def supersede(connection: sqlite3.Connection, wall: float, version: int = 0) -> None:
    """Raises every epoch above all that the copy knows and, unless the clock was set back, all that were given since.
    `wall` is the store's clock, seconds; `version` the newest of a row that is known to have been given: it stands for
    a clock that was set back, and is noted for streams of which the copy knows nothing. Harmless twice."""
    if version:
        note_height(connection, version)
        wall = max(wall, version / 1e6 + 1)
    # Who knows a version of control that is not there any more hears of what is.
    lifted = (int(wall) - EPOCHS_FROM,)
    connection.execute("UPDATE control_version SET version = max(version + 1, ?)", lifted)
    (highest,) = connection.execute(
        "SELECT max(e) FROM (SELECT max(epoch) AS e FROM ownership"
        f" UNION ALL SELECT max(epoch) FROM checkpoint_sources WHERE {_CHECKPOINTS}"
        f" UNION ALL SELECT max(epoch) FROM ledger_heads WHERE {_HEADS})"
    ).fetchone()
    if highest is None:
        return
    epoch = next_epoch(highest, wall)
    connection.execute(f"UPDATE checkpoint_sources SET epoch = ? WHERE {_CHECKPOINTS}", (epoch,))
    connection.execute(f"UPDATE ledger_heads SET epoch = ? WHERE {_HEADS}", (epoch,))
    connection.execute("UPDATE ownership SET epoch = ?, version = max(version + 1, ?)", (epoch, int(wall * 1e6)))
    _bar(connection, epoch, int(wall * 1e6))


def _bar(connection: sqlite3.Connection, epoch: int, version: int) -> None:
    """Rows of what waits to be started are started by owners of what is due that come after this epoch. Their row is
    there from then on, free, so that the next one is given a higher epoch whatever its clock says."""
    rows = connection.execute(
        "SELECT source, partition, position, entry FROM ledger"
        f" WHERE place IN ({LedgerPlace.PARKING:d}, {LedgerPlace.PARKED:d})"
    ).fetchall()
    if not rows:
        return
    connection.execute(
        "INSERT OR IGNORE INTO ownership VALUES (?, '', ?, ?, '', 0.0, '[]')",
        (_DUE, version, epoch),
    )
    connection.executemany(
        "UPDATE ledger SET entry = ? WHERE source = ? AND partition = ? AND position = ?",
        ((entry_text(entry_of(json.loads(text))._replace(epoch=epoch)), *where) for *where, text in rows),
    )
