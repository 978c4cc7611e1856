"""Copies of a stream's items that are appended to the delay service, as their rows say."""

from __future__ import annotations

from msgspec.structs import replace

from ...model.ledger import LedgerEntry
from ...model.parked import Parked
from ..ledger.rows import RowHome
from ..rules.settlement import Settlement
from .departure import EndedItem


def copy_of(
    item: EndedItem,
    tailer: str,
    home: RowHome | None,
    settlement: Settlement,
    due: float,
    first_seen: float,
    row: LedgerEntry | None,
) -> Parked:
    """The copy of an item that first came from `tailer`; `home` is where its row is, which shall be `row`."""
    extra = item.extra
    return Parked(
        tailer=tailer,
        id=item.id,
        kind=item.kind,
        payload=item.payload,
        due=due,
        first_seen=first_seen,
        attempt=settlement.failed + 1,
        crashes=settlement.crashes,
        throttles=settlement.throttles,
        fence=item.fence if row is None or item.fence > row.fence else row.fence,
        reason=settlement.reason,
        key=extra.key,
        headers=item.headers,
        expires_at=extra.expires_at,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=0 if home is None else home.position,
        n=0 if row is None else row.n,
    )


def as_row_says(parked: Parked, row: LedgerEntry | None) -> Parked:
    """What is appended to the delay service for a row of the ledger; None: it has none."""
    if row is None:
        return parked
    return replace(
        parked,
        n=row.n,
        due=row.due,
        attempt=row.attempts + 1,
        crashes=row.crashes,
        throttles=row.throttles,
        fence=max(parked.fence, row.fence),
    )
