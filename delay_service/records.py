"""A parked item as a log record, and what the mover needs to know of one without making it an item again.

A rung's stream is named for its wait: `delay.<wait>`; what is due has names of its own (`sdk.model.parked`). An item
that moves on keeps its payload, key and headers untouched; the latest time it may leave the ladder travels as one more
header.
"""

from __future__ import annotations

from typing import NamedTuple

from ..sdk.model.errors import InvalidRequest
from ..sdk.model.parked import Parked, parked_headers
from ..sdk.model.units import duration_text, seconds
from ..sdk.model.workload import Headers
from ..stores.log.log import Record

RUNG_PREFIX = "delay."
#: Where the mover puts records of a rung that are not parked items: kept for people, in nobody's way.
UNREADABLE = "unreadable.delay"

_LATEST = "tailrace-latest"
_DUE = "tailrace-due"
_FUNCTION = "tailrace-function"


class Ticket(NamedTuple):
    """What decides where an item goes next; times are wall clock seconds."""

    function: str
    due: float
    latest: float


def rung_stream(wait: float) -> str:
    """The stream of a rung."""
    return RUNG_PREFIX + duration_text(wait)


def rung_wait(stream: str) -> float | None:
    """The wait of a rung's stream, in seconds; None for any other stream."""
    if not stream.startswith(RUNG_PREFIX):
        return None
    try:
        return seconds(stream.removeprefix(RUNG_PREFIX)) or None
    except InvalidRequest:
        return None


def record_of(item: Parked, latest: float) -> Record:
    """The record of an item that is parked now."""
    return Record(item.payload, item.key, ((_LATEST, repr(latest)), *parked_headers(item)))


def ticket_of(headers: Headers) -> Ticket | None:
    """What a record's headers say; None when they are not those of a parked item."""
    values = dict(headers[::-1])  # of equal names the first one counts: ours stand before the workload's own
    try:
        due = float(values[_DUE])
        return Ticket(values[_FUNCTION], due, float(values.get(_LATEST, due)))
    except (KeyError, ValueError):
        return None
