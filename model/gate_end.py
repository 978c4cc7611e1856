"""The end of a gate, as people say it, fixed to an instant."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo

from .errors import InvalidRequest
from .units import seconds


def gate_end(lasting: str, until: str, now: float, zone: tzinfo | None = None) -> float:
    """The time at which a gate ends (wall clock, seconds), read from how long it lasts, such as "2h", from a time of
    day, such as "18:00" (the next one), or from a date and time, such as "2026-05-01T12:00". 0 when neither is given:
    the gate stays until it is resumed. Times without a zone are local ones, or those of `zone`. `now` is wall clock.
    Raises InvalidRequest."""
    if lasting and until:
        raise InvalidRequest("--for and --until both say when it ends: give one of them")
    if lasting:
        try:
            length = seconds(lasting)
        except InvalidRequest as error:
            raise InvalidRequest(f"--for: {error}") from None
        if length <= 0:
            raise InvalidRequest(f"--for is {lasting!r}: expected a time above 0, such as 2h")
        return now + length
    if not until:
        return 0.0
    if (end := _instant(until, now, zone)) is None:
        raise InvalidRequest(
            f'--until is {until!r:.60}: expected a time of day such as "18:00", or a time such as "2026-05-01T12:00"'
        )
    if end <= now:
        raise InvalidRequest(f"--until is {until!r:.60}, which is over: expected a later time")
    return end


def _instant(until: str, now: float, zone: tzinfo | None) -> float | None:
    """A time without a zone is one of the clock there, whose offset is that of its own day."""
    try:
        day = time.fromisoformat(until) if ":" in until and "-" not in until else None
    except ValueError:
        return None
    try:
        if day is None:
            end = datetime.fromisoformat(until)
            return end.replace(tzinfo=end.tzinfo or zone).timestamp()
        zone = day.tzinfo or zone
        today = datetime.fromtimestamp(now, zone).date()
        ends = (datetime.combine(today + timedelta(days=days), day, zone).timestamp() for days in (0, 1))
        return next((end for end in ends if end > now), None)
    except (ValueError, OverflowError, OSError):
        return None
