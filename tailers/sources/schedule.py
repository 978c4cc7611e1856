"""A clock as a source: the runs of all schedules, one stream of one partition.

A process that has the source open also fires due schedules (`Ticker`). Any number of processes may: one firing of each
instant counts (stores/schedules). A record has the contents of its schedule at that time: the payload, and in headers
the function, priority, collection, tenant, overlap, the schedule's name and the instant; its key is the name, unless
runs may overlap; its time is the instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from ...foundation.clock import Clock
from ...foundation.duties import Duties
from ...foundation.logger import Logger
from ...model.errors import ConfigError, NotConnected, TailraceError
from ...model.schedule import KEEP, MOST_SCHEDULES, Overlap, Schedule, ScheduledRun, ScheduleRow
from ...model.workload import Headers
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.queue.lease_clock import was_set
from ...stores.schedules.firing import firing, set_back
from ...stores.schedules.schedules import Runs, Schedules
from ...stores.trusted_time import TrustedTime
from ..registry import Environment
from .wait_or_closed import wait_or_closed

#: The one partition.
ONLY = "0"
#: The ticker looks at least this often, seconds: it finds changes by other processes then.
LOOK_EVERY = 1.0
#: Seconds between two looks for schedules that were decided by a clock that was ahead, another host's perhaps; the
#: first is at the start.
LOOK_BACK_EVERY = 300.0
#: Schedules fired between two looks at the clock.
AT_ONCE = 256
#: The most runs that wait in the stream. While there are so many nothing is fired; then the catch-up policy decides.
MOST_WAITING = 100_000
#: Seconds between two deletions of old runs; and positions so near to each other that one look reads them again.
TRIM_EVERY = 60.0
NEAR = 256

log = Logger("tailrace.schedules")


class ScheduleOptions(BaseModel):
    """No options: schedules are in the store (`tailrace schedule`, schedules.yaml)."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Ticker:
    """Fires due schedules, and sleeps until the next one is due. `settled` is the position below which the stream's
    reader has settled all runs."""

    def __init__(self, schedules: Schedules, clock: Clock) -> None:
        self.settled = 0
        self._schedules = schedules
        self._clock = clock
        self._told: set[int] = set()
        self._away = ""
        self._looked_back = -LOOK_BACK_EVERY
        self._ahead, self._at = self._clocks()

    def _clocks(self) -> tuple[int, int]:
        """µs by which the wall clock is ahead of the monotonic one, and µs of that one."""
        at = int(self._clock.monotonic() * 1e6)
        return int(self._clock.wall() * 1e6) - at, at

    async def run(self) -> None:
        """Ticks for ever. A store that is away is looked at again, and missed runs are caught up with; any other error
        is raised."""
        while True:
            try:
                await self.look_back()
                following = await self.look()
                self._away = ""
            except TailraceError as error:
                following = 0.0
                if not self._away:
                    log.warning("schedules cannot be read, trying again", reason=str(error))
                self._away = str(error)
            left = following - self._clock.wall() if following else LOOK_EVERY
            await asyncio.sleep(min(LOOK_EVERY, max(0.0, left)))

    async def look(self) -> float:
        """Fires everything that is due now; returns the time of the next run (wall clock), 0: unknown."""
        while True:
            now = self._clock.wall()
            due = await self._schedules.due(now, AT_ONCE)
            if due.rows and (await self._schedules.bounds()).end - self.settled >= MOST_WAITING:
                return 0.0
            fired = await asyncio.gather(*(self._fire(row, now) for row in due.rows))  # they share commits
            if not any(fired):
                return due.next_at
            await asyncio.sleep(0)

    async def look_back(self) -> None:
        """Sets back to now the schedules that were decided up to a time far ahead, by a clock that has been set since
        or by another host's clock. Otherwise they would be silent until then. Looks at once where this host's clock was
        set back, else now and then."""
        ahead, at = self._clocks()
        if was_set(self._ahead, ahead, at - self._at) >= 0:  # else it is noted once all were looked at
            self._ahead, self._at = ahead, at
            if self._clock.monotonic() < self._looked_back + LOOK_BACK_EVERY:
                return
        now = self._clock.wall()
        for row in await self._schedules.list(MOST_SCHEDULES):
            if (after := set_back(row, now)) is not None and await self._schedules.put(after, row.version):
                log.warning(
                    "a schedule was decided up to a time ahead, by a wrong clock; it goes on from now",
                    schedule=row.schedule.name,
                    ahead=round(row.decided - now),
                )
        self._looked_back = self._clock.monotonic()
        self._ahead, self._at = ahead, at

    async def _fire(self, row: ScheduleRow, now: float) -> bool:
        """Fires one schedule; returns whether there may be more of it to fire at once."""
        try:
            step = firing(row, now)
        except Exception as error:  # its time zone is not known here, say; other schedules fire all the same
            if row.version not in self._told:
                self._told.add(row.version)
                log.error(
                    "a schedule cannot be read and does not fire",
                    schedule=row.schedule.name,
                    reason=str(error) or repr(error),
                )
            return False
        if await self._schedules.fire(row.schedule.name, row.version, row.decided, step, now) and step.passed_over:
            log.warning("runs passed over", schedule=row.schedule.name, runs=step.passed_over)
        return True


class ScheduleSource:
    """Implements `sdk.source.StreamSource` over `stores.schedules.schedules.Schedules`."""

    capabilities = Capabilities(delays=False)

    def __init__(self, schedules: Schedules, clock: Clock, trusted: TrustedTime | None = None) -> None:
        self._schedules = schedules
        self._clock = clock
        self._trusted = trusted or TrustedTime(clock)
        self._ticker = Ticker(schedules, clock)
        self._next = 0
        self._closed = asyncio.Event()
        self._closed.set()
        self._duties = Duties("schedules", self._fail)
        self._failure = ""
        self._trimmed_at = 0.0

    async def open(self, positions: Mapping[str, int]) -> None:
        if not self._closed.is_set():
            return
        start = (await self._schedules.bounds()).start
        self._next = self._ticker.settled = positions.get(ONLY, start)
        self._failure = ""
        self._closed.clear()
        self._duties.begin(self._ticker.run(), "the ticking")

    def _fail(self, why: str) -> None:
        self._failure = why

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if self._closed.is_set():
            return []
        if self._failure:  # nothing fires any more: the source is to be opened again
            raise NotConnected(self._failure)
        found = await self._schedules.read(self._next, limit, max_bytes)
        if not found.runs and timeout > 0 and await self._wait(timeout):
            found = await self._schedules.read(self._next, limit, max_bytes)
        if not found.runs:
            return []
        self._next = found.runs[-1].position + 1
        return [_batch(found, found.runs)]

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        batch = StreamBatch(ONLY, [], [], [], [], [])
        wanted, at = sorted(positions), 0
        while at < len(wanted):
            stop = at + 1
            while stop < len(wanted) and wanted[stop] - wanted[at] < NEAR:
                stop += 1
            few = set(wanted[at:stop])
            found = await self._schedules.read(wanted[at], wanted[stop - 1] + 1 - wanted[at], 1 << 24)
            _append(batch, found, [run for run in found.runs if run.position in few])
            reached = found.runs[-1].position if found.runs else wanted[stop - 1]
            while at < len(wanted) and wanted[at] <= reached:
                at += 1
        batch.absent = sorted(set(wanted).difference(batch.positions))
        return batch

    async def ends(self) -> dict[str, int]:
        return {ONLY: (await self._schedules.bounds()).end}

    async def settled_below(self, partition: str, position: int) -> None:
        """Deletes old runs now and then, but none that the checkpoint has not passed."""
        self._ticker.settled = position
        now = self._clock.monotonic()
        if now >= self._trimmed_at + TRIM_EVERY or not self._trimmed_at:
            self._trimmed_at = now
            await self._schedules.trim(position, self._trusted.seconds() - KEEP)

    async def close(self) -> None:
        self._closed.set()
        await self._duties.end()

    async def _wait(self, timeout: float) -> bool:
        """Waits for a run or for `close`; returns whether there may be runs to read."""
        await wait_or_closed(self._schedules.wait(self._next, timeout), self._closed)
        return not self._closed.is_set()


def _batch(found: Runs, runs: Sequence[ScheduledRun]) -> StreamBatch:
    batch = StreamBatch(ONLY, [], [], [], [], [])
    _append(batch, found, runs)
    return batch


def _append(batch: StreamBatch, found: Runs, runs: Sequence[ScheduledRun]) -> None:
    for run in runs:
        schedule = found.schedules[run.version]
        batch.positions.append(run.position)
        batch.times.append(run.instant)
        batch.keys.append("" if schedule.overlap is Overlap.ALLOW else schedule.name)
        batch.headers.append(_headers(schedule, run))
        batch.payloads.append(schedule.payload)


def _headers(schedule: Schedule, run: ScheduledRun) -> Headers:
    instant = datetime.fromtimestamp(run.instant, UTC).isoformat().replace("+00:00", "Z")
    said = {
        "function": schedule.function,
        "priority": schedule.priority,
        "collection": schedule.collection,
        "tenant": schedule.tenant,
        "overlap": schedule.overlap.value,
        "schedule": schedule.name,
        "instant": instant,
    }
    return tuple((name, value) for name, value in said.items() if value)


def build(options: ScheduleOptions, environment: Environment) -> ScheduleSource:
    """The source over this process's schedules. Raises ConfigError where it has none."""
    if environment.schedules is None:
        raise ConfigError("source.kind: this process has no store of schedules")
    return ScheduleSource(environment.schedules, environment.clock, environment.trusted)


KIND = SourceKind(
    "schedule",
    "stream",
    ScheduleOptions,
    build,
    ScheduleSource.capabilities,
    description="runs of schedules: cron, intervals, moments",
)
