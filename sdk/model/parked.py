"""A stream item that rests in the delay service, and how it travels through a log: the payload, the rest as headers."""

from __future__ import annotations

from dataclasses import dataclass

from .workload import Headers, Kind

_PREFIX = "tailrace-"
_DUE = "due."


def due_stream(function: str) -> str:
    """The stream in which a function's items stand when they are due."""
    return _DUE + function


def due_function(stream: str) -> str | None:
    """The function whose due items a stream holds; None for any other stream."""
    return stream.removeprefix(_DUE) if stream.startswith(_DUE) else None


@dataclass(frozen=True, slots=True)
class Parked:
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


def parked_headers(item: Parked) -> Headers:
    """Everything but the payload, as the headers of a log record. The workload's own headers follow, untouched."""
    own = (
        ("tailer", item.tailer),
        ("id", item.id),
        ("function", item.kind.function),
        ("priority", str(item.kind.priority)),
        ("collection", item.kind.collection),
        ("tenant", item.kind.tenant),
        ("due", repr(item.due)),
        ("first-seen", repr(item.first_seen)),
        ("attempt", str(item.attempt)),
        ("crashes", str(item.crashes)),
        ("throttles", str(item.throttles)),
        ("fence", str(item.fence)),
        ("reason", item.reason),
        ("key", item.key),
        ("expires-at", repr(item.expires_at)),
        ("progress", item.progress),
        ("partition", item.partition),
        ("position", str(item.position) if item.position else ""),
        ("n", str(item.n) if item.n else ""),
    )
    return tuple((_PREFIX + name, value) for name, value in own if value) + item.headers


def parked_from(headers: Headers, payload: bytes) -> Parked:
    """The inverse of `parked_headers`. Raises KeyError for a record that is not a parked item."""
    own = {name[len(_PREFIX) :]: value for name, value in headers if name.startswith(_PREFIX)}
    return Parked(
        tailer=own["tailer"],
        id=own["id"],
        kind=Kind(own["function"], int(own["priority"]), own.get("collection", ""), own.get("tenant", "")),
        payload=payload,
        due=float(own["due"]),
        first_seen=float(own["first-seen"]),
        attempt=int(own.get("attempt", 1)),
        crashes=int(own.get("crashes", 0)),
        throttles=int(own.get("throttles", 0)),
        fence=int(own.get("fence", 0)),
        reason=own.get("reason", ""),
        key=own.get("key", ""),
        headers=tuple((name, value) for name, value in headers if not name.startswith(_PREFIX)),
        expires_at=float(own.get("expires-at", 0.0)),
        progress=own.get("progress", ""),
        partition=own.get("partition", ""),
        position=int(own.get("position", 0)),
        n=int(own.get("n", 0)),
    )
