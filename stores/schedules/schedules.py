"""The schedules' protocol: schedules, the progress of each, and the stream of their runs."""

from __future__ import annotations

import builtins
from typing import NamedTuple, Protocol

from ...model.schedule import KEEP, MOST_SCHEDULES, Firing, Schedule, ScheduledRun, ScheduleRow

#: Runs kept behind the checkpoint at most; older ones go first.
KEPT_RUNS = 1_000_000


class DueSchedules(NamedTuple):
    """Schedules that are due: rows whose `next_at` has come, and the earliest `next_at` of the others; 0: there is
    none."""

    rows: list[ScheduleRow]
    next_at: float


class Runs(NamedTuple):
    """Runs of rising positions, with the schedule of each version as it was when they fired."""

    runs: list[ScheduledRun]
    schedules: dict[int, Schedule]


class RunBounds(NamedTuple):
    """The runs that are kept: from `start` to before `end`, the position that the next one will get."""

    start: int
    end: int


class ScheduleKeeping(Protocol):
    """Schedules kept, and fired when they are due. A change is durable when its method returns. A schedule has one run
    of an instant, whichever process fires it."""

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        """Keeps a row when the stored version is still `expected` (0: none of this name); returns it with its new
        version. None: the version is another, and nothing was changed. Raises InvalidRequest when there are
        MOST_SCHEDULES already."""

    async def remove(self, name: str) -> bool:
        """Forgets a schedule; its runs stay. Returns False where there was none."""

    async def get(self, name: str) -> ScheduleRow | None:
        """One schedule; None: there is none of this name."""

    async def list(self, limit: int) -> list[ScheduleRow]:
        """Up to `limit` schedules, by name."""

    async def due(self, now: float, limit: int) -> DueSchedules:
        """The schedules whose time has come by `now`, the earliest first; for the rest the time to look again."""

    async def fire(self, name: str, version: int, decided: float, firing: Firing, at: float) -> bool:
        """Carries out `firing`, in one step, when the schedule still has this version and is decided up to `decided`.
        False: another process was first, and nothing was changed."""

    async def run(self, name: str, instant: float, at: float) -> ScheduledRun | None:
        """Makes one run by hand, beside the schedule's own. None: there is no such schedule, or a run of this instant
        exists."""


class ScheduleRuns(Protocol):
    """The stream of the schedules' runs. Positions are dense and never given twice."""

    async def read(self, position: int, limit: int, max_bytes: int) -> Runs:
        """Runs from a position on, at most `limit`, with about `max_bytes` of payload (one run at least)."""

    async def last(self, name: str, limit: int) -> builtins.list[ScheduledRun]:
        """Runs of one schedule, the newest first."""

    async def bounds(self) -> RunBounds:
        """The bounds of the runs that are kept."""

    async def wait(self, end: int, timeout: float) -> int:
        """Returns the end when it is not `end` any more, or after `timeout` seconds."""

    async def trim(self, position: int, before: float) -> int:
        """Forgets runs below `position` that fired before that time or are beyond KEPT_RUNS, and schedules made by hand
        that were over then. Returns how many runs were forgotten."""


class Schedules(ScheduleKeeping, ScheduleRuns, Protocol):
    """Schedules as an engine keeps them: both protocols. A part that needs one of them asks for that one only."""


__all__ = [
    "KEEP",
    "KEPT_RUNS",
    "MOST_SCHEDULES",
    "DueSchedules",
    "Firing",
    "ScheduledRun",
    "RunBounds",
    "Runs",
    "ScheduleKeeping",
    "ScheduleRow",
    "ScheduleRuns",
    "Schedules",
]
