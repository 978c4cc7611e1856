"""The dead letter of an item that failed and cannot wait."""

from __future__ import annotations

from ...sdk.model.dead_letter import DeadLetter
from ...sdk.model.ledger import LedgerEntry
from ...sdk.model.outcome import Outcome
from ...sdk.model.parked import Parked
from ..ledger.rows import RowHome


def unparkable(item: Parked, home: RowHome | None, why: str, now: float, row: LedgerEntry | None) -> DeadLetter:
    """For an item that the delay service refuses for good. `home` names its `row` in the ledger; `now`: wall clock."""
    return DeadLetter(
        id=item.id,
        tailer=item.tailer,
        kind=item.kind,
        payload=item.payload,
        outcome=Outcome.RETRY.name.lower(),
        reason=f"{item.reason} (cannot be parked: {why})",
        attempts=item.attempt - 1,
        crashes=item.crashes,
        first_seen=item.first_seen,
        died_at=now,
        key=item.key,
        headers=item.headers,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=-1 if home is None else home.position,
        tries=() if row is None else row.tries,
    )
