"""Durations ("30s", "1h30m", 2.5), rates ("500/min") and sizes ("16MiB", 4096) as people write them, as numbers."""

from __future__ import annotations

import math
import re
from datetime import datetime

from .errors import InvalidRequest

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_BYTES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
#: The longest duration that is taken, in seconds.
LONGEST = 36_525 * 86_400.0
_PER = {"s": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_RATE = re.compile(r"(\d[\d_]*(?:\.\d+)?)(?:\s*/\s*(s|m|min|minute|h|hour|d|day))?")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


def seconds(value: float | str) -> float:
    """A duration in seconds, an exact float. Raises InvalidRequest for what is not one, is negative or beyond LONGEST:
    no store could keep when it is over."""
    found: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not 0 <= found < math.inf:
            raise InvalidRequest(f"{_shown(value)} is not a duration: expected zero or more seconds")
    elif isinstance(value, str):
        text = value.strip().lower()
        parts = _DURATION_PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            found = float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
        elif re.fullmatch(r"\d+(\.\d+)?", text):
            found = float(text)
    if found is None:
        raise InvalidRequest(
            f'{_shown(value)} is not a duration: expected seconds, or text like "30s", "5m" or "1h30m"'
        )
    if found > LONGEST:
        raise InvalidRequest(f"{_shown(value)} is too long for a duration: expected at most a hundred years")
    return found


def _shown(value: object) -> str:
    try:
        return f"{value!r:.100}"
    except ValueError:  # an int of more digits than Python writes out
        return f"a number of some {int(value).bit_length()} bits"  # type: ignore[call-overload]


def per_second(value: float | str) -> float:
    """A rate as so much a second: a number, or text like "500/min". Raises InvalidRequest for what is not one."""
    found: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
    elif isinstance(value, str) and (match := _RATE.fullmatch(value.strip().lower())):
        found = float(match[1].replace("_", "")) / _PER[match[2] or "s"]
    if found is None or not 0 <= found < math.inf:
        raise InvalidRequest(f'{_shown(value)} is not a rate: expected a number per second, or text like "500/min"')
    return found


def size(value: int | str) -> int:
    """A size in bytes. Raises InvalidRequest for what is not one, or is negative."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip().lower())
        if match and (match[2] or "b") in _BYTES:
            return int(float(match[1]) * _BYTES[match[2] or "b"])
    raise InvalidRequest(f'{value!r} is not a size: expected bytes, or text like "64KiB" or "16MiB"')


def size_text(value: int) -> str:
    """A size for people, three digits: `812 MiB`, `1.5 GiB`."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"


def duration_text(value: float) -> str:
    """The shortest text that `seconds` reads back as `value` (to the millisecond)."""
    left = round(value * 1000)
    if left <= 0:
        return "0s"
    parts = []
    for unit, step in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left = divmod(left, step)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def delay_or_moment(option: str, text: str) -> tuple[float | None, float | None]:
    """Seconds from now, or a wall clock time, of how long from now or an ISO 8601 time (without a zone: the local one).
    Raises InvalidRequest."""
    try:
        return seconds(text), None
    except InvalidRequest:
        pass
    try:
        return None, max(1.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f'{option} is {_shown(text)}: expected how long from now, such as "10m", or a time such as '
            '"2026-05-01T12:00"'
        ) from None


def start_of(text: str, now: float) -> float:
    """The wall clock time at which reading begins, from how long before `now`, or from an ISO 8601 time with its zone.
    Raises InvalidRequest."""
    try:
        return now - seconds(text)
    except InvalidRequest:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise InvalidRequest(
            f'{text!r}: expected earliest, latest, how long before the first start, such as "2h", or a time with its '
            'zone, such as "2026-01-31T08:00:00+01:00"'
        )
    return when.timestamp()


def moment_of(option: str, text: str, now: float) -> float:
    """A wall clock time, from how long before `now` or from an ISO 8601 time (without a zone: the local one); 0 for an
    empty text. Raises InvalidRequest."""
    if not text:
        return 0.0
    try:
        return max(1.0, now - seconds(text))
    except InvalidRequest:
        pass
    try:
        return max(1.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f'{option} is {text!r}: expected how long ago, such as "90m", or a time such as "2026-05-01T12:00"'
        ) from None
