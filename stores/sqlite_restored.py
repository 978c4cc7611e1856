"""No owner from before a store was put back from a copy goes on in it.

A tailer that lives through the restore of a store elsewhere knows of settlements, rows and parked items that the copy
does not have. So before anything is served the epochs of all streams rise, in their rows, checkpoints and ledgers, in
one transaction: whoever had a stream is refused as stale, and begins anew with what the copy says.
"""

from __future__ import annotations

import sqlite3

from .ownership.epochs import EPOCHS_FROM

#: Checkpoints and heads of ledgers that belong to an owner's row; a source's own counts have no epochs to rise.
_CHECKPOINTS = "source IN (SELECT iif(partition = '', source, source || '/' || partition) FROM ownership)"
_HEADS = "source IN (SELECT source FROM ownership)"


def supersede(connection: sqlite3.Connection, wall: float) -> None:
    """Raises every epoch above all that the copy knows and, unless the clock was set back, all that were given since.
    `wall` is the store's clock, seconds. Harmless twice."""
    (highest,) = connection.execute(
        "SELECT max(e) FROM (SELECT max(epoch) AS e FROM ownership"
        f" UNION ALL SELECT max(epoch) FROM checkpoint_sources WHERE {_CHECKPOINTS}"
        f" UNION ALL SELECT max(epoch) FROM ledger_heads WHERE {_HEADS})"
    ).fetchone()
    if highest is None:
        return
    epoch = max(highest + 1, int(wall) - EPOCHS_FROM)
    connection.execute(f"UPDATE checkpoint_sources SET epoch = ? WHERE {_CHECKPOINTS}", (epoch,))
    connection.execute(f"UPDATE ledger_heads SET epoch = ? WHERE {_HEADS}", (epoch,))
    connection.execute("UPDATE ownership SET epoch = ?, version = max(version + 1, ?)", (epoch, int(wall * 1e6)))
