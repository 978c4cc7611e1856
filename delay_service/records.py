"""A parked item as a log record, and what the mover needs to know of one without making it an item again.

A rung's stream is named for its wait: `delay.<wait>`; due streams have names of their own (`model.parked`). An item
that moves on keeps its payload, key and headers untouched.
"""

from __future__ import annotations

from ..model.errors import InvalidRequest
from ..model.parked import Parked, parked_headers
from ..model.units import duration_text, seconds
from ..stores.log.log import Record

RUNG_PREFIX = "delay."
#: The stream for records of a rung that are not parked items: kept for people, out of the mover's way.
UNREADABLE = "unreadable.delay"


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
    return Record(item.payload, item.key, parked_headers(item, latest))
