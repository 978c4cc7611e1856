"""The instants of a schedule: by cron, by an interval, or once; with time zones and daylight saving.

Cron follows Debian, by cronsim. A run in the hour that daylight saving takes away comes right after it, a run in the
hour that comes twice comes in the first one, and runs every so many minutes or hours keep their pace in both.
Expressions with seconds, which Debian does not have, leave out times that do not exist and run twice in times that come
twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from ...model.did_you_mean import nearest, question
from ...model.errors import InvalidRequest
from ...model.schedule import Schedule

_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_EXPECTED = ("0-59", "0-59", "0-23", "1-31, L or LW", "1-12 or JAN-DEC", "0-7 or SUN-SAT")
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
#: The day from which an expression is tried out.
_SOME_DAY = datetime(2020, 1, 1, tzinfo=UTC)
#: Most characters of an expression.
_LONGEST = 200


def instants_after(schedule: Schedule, after: float) -> Iterator[float]:
    """Yields the instants later than `after`, rising, none twice; wall clock seconds. Raises InvalidRequest as
    `check_timetable` does."""
    for instant in _instants(schedule, after):
        if schedule.until and instant > schedule.until:
            return
        if instant <= after or instant < schedule.starts:
            continue  # several times of a day may fall onto one instant, where daylight saving begins
        after = instant
        yield instant


def _instants(schedule: Schedule, after: float) -> Iterator[float]:
    if schedule.at:
        yield schedule.at
    elif schedule.every:
        anchor = schedule.starts or schedule.created_at
        turn = max(0 if schedule.starts else 1, math.floor((after - anchor) / schedule.every))
        while True:
            yield round(anchor + turn * schedule.every, 3)
            turn += 1
    else:
        begin = datetime.fromtimestamp(max(after, schedule.starts - 1), zone_of(schedule.timezone))
        for found in CronSim(expression_of(schedule.cron), begin):
            yield found.timestamp()


def check_timetable(schedule: Schedule) -> None:
    """Raises InvalidRequest for a bad cron expression, naming the field and the column at fault, and for an unknown
    time zone, with the nearest known one."""
    try:
        zone_of(schedule.timezone)
        if schedule.cron:
            check_cron(schedule.cron)
    except InvalidRequest as error:
        raise InvalidRequest(f"{schedule.name}: {error}") from None


def check_cron(text: str) -> None:
    """Raises InvalidRequest for a text that is no cron expression, or that has no day in fifty years."""
    if len(text) > _LONGEST:
        raise InvalidRequest(f"cron has {len(text)} characters: expected at most {_LONGEST}")
    if text.startswith("@") and text not in _NICKNAMES:
        raise InvalidRequest(f"cron: {text!r} is not known: expected {', '.join(sorted(_NICKNAMES))}, or five fields")
    expression = expression_of(text)
    fields = expression.split()
    if len(fields) not in (5, 6):
        raise InvalidRequest(
            f'cron: "{text}" has {len(fields)} field{"s" * (len(fields) != 1)}: expected five (minute hour '
            "day-of-month month day-of-week), or six with seconds before them"
        )
    try:
        next(CronSim(expression, _SOME_DAY))
    except (CronSimError, ValueError, AssertionError) as error:
        raise InvalidRequest(_fault(expression, fields, str(error))) from None
    except StopIteration:
        raise InvalidRequest(f'cron: "{text}" has no day in the next fifty years') from None


def _fault(expression: str, fields: list[str], said: str) -> str:
    """A message that names the bad field, and the column of the bad part in it."""
    name = said.removeprefix("Bad ")
    number = _FIELDS.index(name) - (6 - len(fields)) if name in _FIELDS else 0
    column, part = _columns(expression)[number], fields[number]
    if "," in part:
        for term in part.split(","):
            if not _parses([*fields[:number], term, *fields[number + 1 :]]):
                part = term
                break
            column += len(term) + 1
    field = number + 6 - len(fields)
    return (
        f'cron: "{expression}", column {column + 1}: bad {_FIELDS[field]} "{part}": expected *, {_EXPECTED[field]}, '
        "lists (1,2), ranges (1-5) or steps (*/5), on a day that exists"
    )


def _columns(expression: str) -> list[int]:
    """The column at which each field begins, from 0."""
    starts = [index for index, each in enumerate(expression) if not each.isspace()]
    return [index for index in starts if index == 0 or expression[index - 1].isspace()]


def _parses(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), _SOME_DAY)
    except (CronSimError, ValueError, AssertionError):
        return False
    return True


def expression_of(text: str) -> str:
    """The fields of a cron expression, also for a nickname such as @daily."""
    return _NICKNAMES.get(text, text)


@lru_cache(maxsize=256)
def zone_of(name: str) -> Any:
    """A time zone by its name. UTC is the standard library's own, for which cron need not look for daylight saving.
    Raises InvalidRequest."""
    if name == "UTC":
        return UTC
    known = available_timezones()
    if name not in known:
        ends = {each.rsplit("/", 1)[-1].lower(): each for each in sorted(known, reverse=True)}
        found = nearest(name, known) or nearest(name.lower(), ends)
        near = question(ends.get(each, each) for each in found)
        hint = f"; {near}" if near else ""
        lacks = "" if known else " (this system has no time zone data: install tzdata)"
        raise InvalidRequest(
            f"timezone {name[:100]!r} is not known: expected a name such as Europe/Berlin{hint}{lacks}"
        )
    return ZoneInfo(name)


def moment_in(option: str, text: str, timezone: str) -> float:
    """The wall clock time of a text in ISO 8601, in that zone unless the text has an offset; 0 for an empty text.
    Raises InvalidRequest, naming the option."""
    if not text:
        return 0.0
    try:
        said = datetime.fromisoformat(text)
        moment = (said if said.tzinfo else said.replace(tzinfo=zone_of(timezone))).timestamp()
    except (ValueError, OverflowError, OSError):
        moment = 0.0
    if moment <= 0:
        raise InvalidRequest(f'{option} is {text[:50]!r}: expected a time, such as "2026-12-24T18:00"')
    return moment
