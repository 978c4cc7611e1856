"""Usage: keeps the reports of schedulers, and sums them for operators."""

from __future__ import annotations

from ..foundation.clock import Clock
from ..model.errors import InvalidRequest
from ..model.name import NAME_LENGTH
from ..model.usage import (
    COLUMNS,
    HOUR,
    KEPT_HOURS,
    REPORT_ROWS,
    UsageKind,
    UsageReport,
    UsageRow,
    UsageSum,
    summed,
    sums_of,
)
from ..stores.trusted_time import TrustedTime
from ..stores.usage.usage import Usage

#: Hours of one question, characters of the names of a function's downstreams together.
MOST_HOURS, LONGEST = 24, 8_000


class UsageDesk:
    """Answers calls about usage (a UsagePort). Hours are old by the `trusted` time."""

    def __init__(self, usage: Usage | None, clock: Clock, trusted: TrustedTime) -> None:
        self._usage = usage
        self._clock, self._trusted = clock, trusted

    def _store(self) -> Usage:
        if self._usage is None:
            raise InvalidRequest("this gateway has no store of usage")
        return self._usage

    async def tell_usage(self, report: UsageReport) -> bool:
        """Stores a report; returns False for a repeat. A report with impossible numbers is refused whole; an hour ahead
        of this clock counts as the next one at most."""
        store = self._store()
        if not report.scheduler or len(report.scheduler) > NAME_LENGTH or report.number < 1:
            raise InvalidRequest("the usage report has no scheduler or number: expected a name, and a number from 1 on")
        if len(report.rows) > REPORT_ROWS:
            raise InvalidRequest(f"a report of {len(report.rows)} rows: at most {REPORT_ROWS} are taken at once")
        now = int(self._clock.wall()) // HOUR
        rows = [_checked(row, now) for row in report.rows]
        below = max(0, min(now, int(self._trusted.seconds()) // HOUR) - KEPT_HOURS)
        return await store.add(report._replace(rows=rows), below)

    async def usage(
        self, since: int, until: int, by: list[str], function: str = "", tenant: str = "", downstream: str = ""
    ) -> list[UsageSum]:
        """Sums usage, reading one hour after the other."""
        store = self._store()
        if not 0 <= until - since <= MOST_HOURS:
            raise InvalidRequest(f"usage of {until - since} hours: ask for at most {MOST_HOURS} at once")
        if unknown := set(by) - set(COLUMNS):
            raise InvalidRequest(f"usage by {sorted(unknown)[0]!r}: expected {', '.join(COLUMNS)}")
        of = UsageKind(0, function, tenant, downstream)
        found: list[UsageSum] = []
        for hour in [hour for hour in await store.hours() if since <= hour < until]:
            found = summed([*found, *sums_of(await store.of_hour(hour), by, of)])
        return found


def _checked(row: UsageRow, now: int) -> UsageRow:
    """A row with its names cut and cleaned, since records of a stream may have any text as a name."""
    if not (0 <= row.items < 1 << 50 and 0 <= row.micros < 1 << 50):
        raise InvalidRequest(f"usage of {row.function!r:.300}: {row.items} items and {row.micros} µs are impossible")
    names = (_kept(row.function), _kept(row.tenant), _kept(row.downstreams, LONGEST))
    return UsageRow(min(row.hour, now + 1), *names, row.items, row.micros)


def _kept(name: str, most: int = NAME_LENGTH) -> str:
    """A name without NULs, which engines cannot store, cut at `most` characters."""
    return name[:most].replace("\0", "\ufffd")
