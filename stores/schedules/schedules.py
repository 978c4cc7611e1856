"""The schedules' protocol: what is scheduled, how far each one is, and the stream of their runs."""

from __future__ import annotations

import builtins
from typing import NamedTuple, Protocol

from ...model.schedule import KEEP, MOST_SCHEDULES, Firing, Schedule, ScheduledRun, ScheduleRow

#: Runs kept behind the checkpoint at most; older ones go first.
KEPT_RUNS = 1_000_000


class DueSchedules(NamedTuple):
    """Schedules that are due: rows whose `next_at` has come, and the earliest of the others; 0: there is none."""

    rows: list[ScheduleRow]
    next_at: float


class Runs(NamedTuple):
    """Runs of rising positions, with the schedule of each version as it was when it fired."""

    runs: list[ScheduledRun]
    schedules: dict[int, Schedule]


class RunBounds(NamedTuple):
    """The runs that are kept: from `start` to before `end`, the position that the next one will get."""

    start: int
    end: int


class ScheduleKeeping(Protocol):
    """Schedules kept, and fired when they are due. Durable when a method returns. Of a schedule and an instant there
    is one run, whoever fires."""

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        """Keeps a row when the version there is still `expected` (0: none of this name); it gets a new version. None:
        it is another, and nothing was changed. Raises InvalidRequest when there are MOST_SCHEDULES already."""

    async def remove(self, name: str) -> bool:
        """Forgets one; its runs stay. Whether there was one."""

    async def get(self, name: str) -> ScheduleRow | None:
        """One of them."""

    async def list(self, limit: int) -> list[ScheduleRow]:
        """By name."""

    async def due(self, now: float, limit: int) -> DueSchedules:
        """The schedules whose time has come by `now`, the earliest first; for the rest when to look again."""

    async def fire(self, name: str, version: int, decided: float, firing: Firing, at: float) -> bool:
        """Does what `firing` says, in one step, when the schedule is still of this version and decided up to there.
        False: somebody else was first, and nothing was changed."""

    async def run(self, name: str, instant: float, at: float) -> ScheduledRun | None:
        """One run by hand, beside what the schedule says. None: there is no such schedule, or a run of this instant."""


class ScheduleRuns(Protocol):
    """The stream of the schedules' runs. Positions are dense and never given twice."""

    async def read(self, position: int, limit: int, max_bytes: int) -> Runs:
        """From a position on, at most so many and about so many bytes of payload (at least one)."""

    async def last(self, name: str, limit: int) -> builtins.list[ScheduledRun]:
        """The newest runs of one schedule first."""

    async def bounds(self) -> RunBounds:
        """Which runs there are."""

    async def wait(self, end: int, timeout: float) -> int:
        """Returns the end when it is not `end` any more, or after `timeout` seconds."""

    async def trim(self, position: int, before: float) -> int:
        """Forgets runs below `position` that fired before that time or are more than KEPT_RUNS; and schedules made by
        hand that were over then. How many runs went."""


class Schedules(ScheduleKeeping, ScheduleRuns, Protocol):
    """Schedules as an engine keeps them: both ports. A part that needs one of them takes that one."""


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
