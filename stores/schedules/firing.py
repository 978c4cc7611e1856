"""Firing: THE rule of which runs of a schedule are due, which are passed over, and when to look again, from (row, now).

A run is never early, each instant fires once, and after an absence the schedule's `catch_up` decides. The caller keeps
the answer by compare-and-set (`Schedules.fire`), so that of any number of callers one succeeds.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import islice, takewhile

from ...model.schedule import MOST_CATCH_UP, CatchUp, Firing, Schedule, ScheduleRow
from .timetable import instants_after

#: Instants looked at in one go (tens of milliseconds); beyond it the oldest are passed over first, and counted.
LOOK_AT = 5000
#: Runs of one firing.
AT_ONCE = 1000
#: Seconds that clocks of hosts may be apart. A decision for a time further ahead was made by a wrong clock.
APART = 60.0


def firing(row: ScheduleRow, now: float) -> Firing:
    """The runs that are due at `now`, wall clock; none for a schedule that is paused or over. `next_at` not later than
    `now` means that there is more to do at once."""
    schedule = row.schedule
    left = _left(row)
    if row.paused or left == 0:
        return Firing((), row.decided, 0, 0.0)
    due = takewhile(lambda instant: due_at(schedule, instant) <= now, instants_after(schedule, row.decided))
    instants = list(islice(due, LOOK_AT + 1))
    if not instants:
        return Firing((), row.decided, 0, next_at(row, row.decided))
    missed = sum(1 for instant in instants if instant + schedule.jitter < now - schedule.grace)
    if len(instants) > LOOK_AT and (passed := min(missed, LOOK_AT - MOST_CATCH_UP)):
        return Firing((), instants[passed - 1], passed, now)
    chosen = _chosen(schedule, instants, missed)[: min(AT_ONCE, left)]
    # Instants behind a bound are for the next look.
    cut = len(chosen) in (AT_ONCE, left) and chosen[-1] < instants[-1]
    decided = chosen[-1] if cut else instants[-1]
    passed = sum(1 for instant in instants if instant <= decided) - len(chosen)
    after = row._replace(decided=decided, runs=row.runs + len(chosen))
    return Firing(tuple(chosen), decided, passed, next_at(after, decided))


def _chosen(schedule: Schedule, instants: list[float], missed: int) -> list[float]:
    if not missed:
        return instants
    if schedule.catch_up is CatchUp.LATEST:
        return instants[-1:]
    if schedule.catch_up is CatchUp.ALL:
        return instants[-schedule.catch_up_max :]
    return instants[missed:]


def next_at(row: ScheduleRow, after: float) -> float:
    """The time when the first run after an instant is due, for a schedule that is not paused; 0: there is none."""
    if _left(row) == 0:
        return 0.0
    found = next(instants_after(row.schedule, after), None)
    return 0.0 if found is None else due_at(row.schedule, found)


def upcoming(row: ScheduleRow, now: float, count: int = 10) -> list[float]:
    """The times when the next `count` runs are due; empty for a schedule that is paused or over."""
    left = _left(row)
    if row.paused or left == 0:
        return []
    few = islice(instants_after(row.schedule, max(row.decided, now - row.schedule.grace)), min(count, left))
    return [due_at(row.schedule, instant) for instant in few]


def paused(row: ScheduleRow, right: str = "") -> ScheduleRow:
    """The row of a schedule that fires no more; it is paused with this right."""
    return row._replace(schedule=replace(row.schedule, paused_with=right), paused=True, next_at=0.0)


def resumed(row: ScheduleRow, now: float) -> ScheduleRow:
    """The row of a schedule that fires again. Runs that fell into the pause are passed over (counted up to LOOK_AT)."""
    fell = takewhile(lambda instant: instant <= now, instants_after(row.schedule, row.decided))
    passed = sum(1 for _ in islice(fell, LOOK_AT))
    after = row._replace(
        schedule=replace(row.schedule, paused_with=""),
        paused=False,
        decided=_decided(row, now),
        passed_over=row.passed_over + passed,
    )
    return after._replace(next_at=next_at(after, after.decided))


def begun(schedule: Schedule, now: float) -> ScheduleRow:
    """The row of a new schedule: no instant up to `now` is due."""
    row = ScheduleRow(schedule, decided=now)
    return row._replace(next_at=next_at(row, now))


def replaced(row: ScheduleRow, schedule: Schedule, now: float) -> ScheduleRow:
    """The row with another definition under the same name. Its counts and its pause go on, and runs that the new
    definition would have had before are not missed."""
    schedule = replace(schedule, paused_with=row.schedule.paused_with)
    after = row._replace(schedule=schedule, decided=_decided(row, now))
    return after if row.paused else after._replace(next_at=next_at(after, after.decided))


def set_back(row: ScheduleRow, now: float) -> ScheduleRow | None:
    """The row of a schedule whose instants a clock that was ahead has decided: it goes on from now, instead of waiting
    for that time. None: the schedule is no such one. A run that fired does not fire again, however often its instant is
    decided."""
    if row.paused or row.decided <= now + APART:
        return None
    after = row._replace(decided=now)
    return after._replace(next_at=next_at(after, now))


def _decided(row: ScheduleRow, now: float) -> float:
    """The time up to which a row that goes on at `now` is decided."""
    return now if row.decided > now + APART else max(row.decided, now)


def due_at(schedule: Schedule, instant: float) -> float:
    """The time when a run is due: its instant, or later by its part of the jitter. Every process works out the same
    time."""
    if not schedule.jitter:
        return instant
    drawn = int.from_bytes(blake2b(f"{schedule.name}\n{instant!r}".encode(), digest_size=8).digest())
    return instant + schedule.jitter * (drawn >> 11) / (1 << 53)


def _left(row: ScheduleRow) -> int:
    """Number of runs that a schedule may still have."""
    return max(0, row.schedule.max_runs - row.runs) if row.schedule.max_runs else LOOK_AT
