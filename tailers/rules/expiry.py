"""Expiry of an item, after which it may not start: some time after its record's own, or a moment that the record names.

A value is a moment (Unix seconds, or milliseconds as most brokers count; ISO 8601 with its zone) or, written with its
unit ("90s"), a time after the record's own.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, NamedTuple

from ...model.errors import InvalidRequest
from ...model.units import seconds

#: Numbers from here on are milliseconds: as seconds that is the year 5138, as milliseconds March 1973.
MILLISECONDS_FROM = 1e11
#: A moment beyond this (the year 9999) is none.
LAST = 253_402_300_800.0


class Expiry(NamedTuple):
    """The time of an expiry. `at` is wall clock seconds; 0: `after` seconds after the record's time."""

    at: float
    after: float = 0.0


def expiry_of(value: Any) -> Expiry | None:
    """The expiry that a header or a field states; None when it states no moment and no duration."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return _moment(float(text))
        except ValueError:
            pass
        try:
            return Expiry(0.0, seconds(text))
        except InvalidRequest:
            return _dated(text)
    return _moment(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def expires_at(expiry: Expiry, time: float) -> float:
    """The wall clock second from which an item of a record of that `time` may not start; 0: it always may, since nobody
    knows from when to count."""
    if expiry.at:
        return expiry.at
    return time + expiry.after if time > 0 else 0.0


def is_over(at: float, now: float) -> bool:
    """Whether an item that expires `at` (0: never) may not start any more."""
    return 0.0 < at <= now


def _moment(number: float) -> Expiry | None:
    if not math.isfinite(number) or number <= 0:
        return None
    at = float(number) / 1000 if number >= MILLISECONDS_FROM else float(number)
    return Expiry(at) if at < LAST else None


def _dated(text: str) -> Expiry | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _moment(moment.timestamp()) if moment.tzinfo is not None else None
