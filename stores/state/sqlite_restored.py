"""Epochs raised in a state that was put back from a copy, so that no former owner goes on in it.

A tailer that lives through the restore of a store elsewhere knows of settlements, rows and parked items that the copy
does not have. So before anything is served the epochs of all streams rise, in their rows, checkpoints and ledgers, in
one transaction: every former owner is refused as stale, and begins anew from the copy.

A copy of an item that comes due carries no epoch when it writes its row. Such a tailer may still have one that the
restored delay service does not know: were it to start from a row that says PARKING, the item's source would leave the
item to that copy, and nobody would run it again. So the rows of waiting items bear the new epoch too, and an older copy
starts none of them.
"""

from __future__ import annotations

import json
import sqlite3

from ...model.ledger import LedgerPlace
from ..ledger.text import entry_of, entry_text
from ..ownership.epochs import EPOCHS_FROM, next_epoch
from ..sqlite.identity import note_height

#: Checkpoints and ledgers' heads that belong to an owner's row; a source's own counts have no epochs to raise.
_CHECKPOINTS = "source IN (SELECT iif(partition = '', source, source || '/' || partition) FROM ownership)"
_HEADS = "source IN (SELECT source FROM ownership)"
#: The source of all due items, whose owner starts the copies.
_DUE = "due"


def supersede(connection: sqlite3.Connection, wall: float, version: int = 0) -> None:
    """Raises every epoch above all that the copy knows and, unless the clock was set back, above all that were given
    since. `wall` is the store's clock, seconds. `version` is the newest row version that is known to have been given:
    it stands for a clock that was set back, and is noted for streams that the copy does not know. Harmless when
    repeated."""
    if version:
        note_height(connection, version)
        wall = max(wall, version / 1e6 + 1)
    # Processes that know a version of the control store which is not there any more are given the present one.
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
    """Has the rows of waiting items started only by owners of the due stream that come after this epoch. The due
    stream's row of ownership exists from then on, free, so that its next owner gets a higher epoch whatever its clock
    says."""
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
