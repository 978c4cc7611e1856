"""A stream item that rests in the delay service, and how it travels through a log: the payload, the rest as one header.

One, since headers are what a Kafka record costs most: with a dozen it was more than twice as dear as with one.
"""

from __future__ import annotations

import msgspec

from .workload import Headers, Kind

#: The header, in JSON: people read it with whatever shows them a log's records.
ITEM = "tailrace-item"
_DUE = "due."


def due_stream(function: str) -> str:
    """The stream in which a function's items stand when they are due."""
    return _DUE + function


def due_function(stream: str) -> str | None:
    """The function whose due items a stream holds; None for any other stream."""
    return stream.removeprefix(_DUE) if stream.startswith(_DUE) else None


class Parked(msgspec.Struct, frozen=True):
    """One parked item. `attempt` is the number the next attempt will have; `fence` is that of its last hand-out, below
    which no later one may go; times are wall clock seconds.

    `tailer`, `partition` and `position` name its row in the ledger, `n` how often it was parked: only the copy whose n
    the row has may start (L16). 0: it has no row, and starts whenever it is due.
    """

    tailer: str
    id: str
    kind: Kind
    payload: bytes
    due: float
    first_seen: float
    attempt: int = 1
    crashes: int = 0
    throttles: int = 0
    fence: int = 0
    reason: str = ""
    key: str = ""
    headers: Headers = ()
    expires_at: float = 0.0
    progress: str = ""
    partition: str = ""
    position: int = 0
    n: int = 0


class Ticket(msgspec.Struct, array_like=True, frozen=True):
    """The ticket of a record, which decides where it goes next: the first fields of its header. Times are wall clock
    seconds; `latest` is when it must have left the ladder (0: nobody said)."""

    function: str
    due: float
    latest: float = 0.0
    key: str = ""


class _Row(msgspec.Struct, array_like=True, frozen=True):
    """The header's value. Fields are added at the end, and never change their place."""

    function: str
    due: float
    latest: float
    key: str
    tailer: str
    id: str
    priority: int
    collection: str
    tenant: str
    first_seen: float
    attempt: int
    crashes: int
    throttles: int
    fence: int
    reason: str
    expires_at: float
    progress: str
    partition: str
    position: int
    n: int


_encode = msgspec.json.Encoder().encode
_row = msgspec.json.Decoder(_Row).decode
_ticket = msgspec.json.Decoder(Ticket).decode


def parked_headers(item: Parked, latest: float = 0.0) -> Headers:
    """Everything but the payload, as the headers of a log record: ours, then the workload's own, untouched."""
    kind = item.kind
    row = (
        kind.function,
        item.due,
        latest,
        item.key,
        item.tailer,
        item.id,
        kind.priority,
        kind.collection,
        kind.tenant,
        item.first_seen,
        item.attempt,
        item.crashes,
        item.throttles,
        item.fence,
        item.reason,
        item.expires_at,
        item.progress,
        item.partition,
        item.position,
        item.n,
    )
    return ((ITEM, _encode(row).decode()), *item.headers)


def ticket_of(headers: Headers) -> Ticket | None:
    """Reads the ticket from a record's headers; None when they are not those of a parked item."""
    if not headers or headers[0][0] != ITEM:
        return None
    try:
        return _ticket(headers[0][1])
    except ValueError:
        return None


def parked_from(headers: Headers, payload: bytes) -> Parked:
    """The inverse of `parked_headers`. Raises ValueError for a record that is not a parked item."""
    if not headers or headers[0][0] != ITEM:
        raise ValueError(f"no parked item: its first header is not {ITEM}")
    row = _row(headers[0][1])
    return Parked(
        row.tailer,
        row.id,
        Kind(row.function, row.priority, row.collection, row.tenant),
        payload,
        row.due,
        row.first_seen,
        row.attempt,
        row.crashes,
        row.throttles,
        row.fence,
        row.reason,
        row.key,
        headers[1:],
        row.expires_at,
        row.progress,
        row.partition,
        row.position,
        row.n,
    )
