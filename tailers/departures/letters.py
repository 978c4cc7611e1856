"""Dead letters of a stream's items: of those that ended so, and of those that can neither go on nor wait."""

from __future__ import annotations

from ...model.dead_letter import DeadLetter
from ...model.ledger import LedgerEntry
from ...model.outcome import Outcome
from ...model.parked import Parked
from ..ledger.rows import RowHome
from ..rules.settlement import Settlement
from .departure import OUTCOMES, EndedItem


def letter_of(item: EndedItem, tailer: str, home: RowHome | None, settlement: Settlement, now: float) -> DeadLetter:
    """For an item that first came from `tailer`, at `now`, wall clock. `home` is where its row is."""
    return DeadLetter(
        id=item.id,
        tailer=tailer,
        kind=item.kind,
        payload=item.payload,
        outcome=OUTCOMES[item.ended.outcome],
        reason=settlement.reason,
        attempts=settlement.failed,
        crashes=settlement.crashes,
        first_seen=item.first_seen,
        died_at=now,
        key=item.extra.key,
        headers=item.headers,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=-1 if home is None else home.position,
        tries=item.tries(settlement.reason, now),
    )


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
