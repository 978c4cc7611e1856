"""A schedule: when a function is to be run, again and again or once, and what becomes of runs that meet or were missed.

Its runs are a stream (tailers/sources/schedule.py); the rule that says which are due is stores/schedules/firing.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .errors import InvalidRequest
from .name import EXPECTED, NAME_LENGTH, is_name
from .priority import Priority
from .units import duration_text

#: Schedules that a store keeps, and seconds for which it keeps a run, or a schedule that is over and made by hand.
MOST_SCHEDULES = 10_000
KEEP = 7 * 86400.0
#: Bounds of a schedule's numbers, seconds unless said.
SHORTEST_EVERY = 1.0
LONGEST_EVERY = 366 * 86400.0
LONGEST_GRACE = 3600.0
LONGEST_JITTER = 86400.0
MOST_CATCH_UP = 1000
#: Characters of who made one.
_WHO_LENGTH = 500


class Overlap(StrEnum):
    """The choice of what becomes of a run whose schedule's previous one is not over.

    skip   it is passed, and counted as filtered
    queue  it waits: runs go one at a time, in order, and one that failed is tried again before the next
    allow  it runs beside it; what fails is parked, like items of a stream without order
    """

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """The choice of what becomes of instants that passed while nothing fired them, more than the grace ago.

    skip    they are passed over
    latest  the newest is run, once
    all     the newest `catch_up_max` are run
    """

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


def usual_catch_up(at: float) -> CatchUp:
    """The catch-up of a schedule that names none: `latest` for a single run at a moment, which a restart then must not
    drop; `skip` for all others."""
    return CatchUp.LATEST if at else CatchUp.SKIP


class Origin(StrEnum):
    """The keeper of a schedule: people, or schedules.yaml, which takes away what it does not name any more."""

    HAND = "hand"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, as its owner wants it. One of `cron`, `every` and `at` says when; times are wall clock seconds, 0:
    none.

    cron        five fields, or six of which the first is seconds, in `timezone` (IANA)
    every       seconds between runs, counted from `starts`, else from when it was made (then first after one of them)
    at          once
    payload     of each run; priority: empty for the function's own
    jitter      each run is later by a part of it, always the same for the same instant
    grace       how late a run may be before it counts as missed
    starts, until    no instant before, or after (both themselves included)
    max_runs    so many and no more; 0: no bound. Those by hand do not count
    paused_with the right with which it was paused, as text, which only the gateway writes; empty: it was not noted
    """

    name: str
    function: str
    payload: bytes = b""
    cron: str = ""
    every: float = 0.0
    at: float = 0.0
    timezone: str = "UTC"
    priority: str = ""
    collection: str = ""
    tenant: str = ""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.SKIP
    catch_up_max: int = 100
    grace: float = 60.0
    jitter: float = 0.0
    starts: float = 0.0
    until: float = 0.0
    max_runs: int = 0
    created_by: str = ""
    created_at: float = 0.0
    origin: Origin = Origin.HAND
    paused_with: str = ""

    @property
    def when(self) -> str:
        """The times of its runs, for people who know cron."""
        if self.cron:
            return f"{self.cron} ({self.timezone})"
        return f"every {duration_text(self.every)}" if self.every else "once"

    def same_as(self, other: Schedule) -> bool:
        """Whether both say the same, whoever made them when."""
        return self._said() == other._said()

    def _said(self) -> tuple[object, ...]:
        told = ("created_by", "created_at", "origin", "paused_with")
        return tuple(getattr(self, name) for name in self.__dataclass_fields__ if name not in told)


class ScheduleRow(NamedTuple):
    """A schedule and how far it is.

    version      of the schedule with its pause: the store's, it rises with every change and is never given twice
    decided      every instant up to here was fired or passed over
    runs, passed_over    how many instants became runs; how many did not, by catch-up or in a pause
    next_at      when the next run is due, with its jitter; 0: none is, since it is paused or over
    """

    schedule: Schedule
    version: int = 0
    paused: bool = False
    decided: float = 0.0
    runs: int = 0
    passed_over: int = 0
    next_at: float = 0.0

    @property
    def over(self) -> bool:
        """Whether it runs no more by itself, whoever waits."""
        return not self.paused and not self.next_at


class Firing(NamedTuple):
    """The decision about a schedule now: `instants` become runs; the rest is the row's from then on, where
    `passed_over` is how many more."""

    instants: tuple[float, ...]
    decided: float
    passed_over: int
    next_at: float


class ScheduledRun(NamedTuple):
    """One run. `position` in the stream of runs; `instant` when it was to be; `fired_at` when it was put there."""

    position: int
    schedule: str
    version: int
    instant: float
    fired_at: float
    by_hand: bool = False


def check_schedule(schedule: Schedule) -> None:
    """Everything about it but its cron expression and time zone (stores/schedules/timetable.py). Raises
    InvalidRequest."""
    name = schedule.name
    if not is_name(name):
        raise InvalidRequest(f"{name[:NAME_LENGTH]!r} is not a schedule's name: {EXPECTED}")
    given = [each for each in ("cron", "every", "at") if getattr(schedule, each)]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        raise InvalidRequest(f"{name}: expected one of cron, every and at, got {said}")
    _check_range(name, "every", schedule.every, SHORTEST_EVERY if schedule.every else 0.0, LONGEST_EVERY)
    _check_range(name, "grace", schedule.grace, 1.0, LONGEST_GRACE)
    _check_range(name, "jitter", schedule.jitter, 0.0, LONGEST_JITTER)
    if not 1 <= schedule.catch_up_max <= MOST_CATCH_UP:
        raise InvalidRequest(f"{name}: catch_up_max is {schedule.catch_up_max}: expected 1 to {MOST_CATCH_UP}")
    if schedule.max_runs < 0:
        raise InvalidRequest(f"{name}: max_runs is {schedule.max_runs}: expected 0 (no bound) or more")
    if schedule.until and schedule.until < max(schedule.starts, schedule.at):
        raise InvalidRequest(f"{name}: until is before {'at' if schedule.at else 'starts'}, so that it would never run")
    if schedule.priority:
        Priority.parse(schedule.priority)
    for what in ("collection", "tenant"):
        text = getattr(schedule, what)
        if text and not is_name(text):
            raise InvalidRequest(f"{name}: {what} is {text[:NAME_LENGTH]!r}: {EXPECTED}")
    if len(schedule.created_by) > _WHO_LENGTH:
        raise InvalidRequest(f"{name}: created_by has {len(schedule.created_by)} characters: at most {_WHO_LENGTH}")
    if schedule.overlap is Overlap.SKIP and schedule.catch_up is CatchUp.ALL:
        raise InvalidRequest(
            f"{name}: catch_up all makes several runs at once, of which overlap skip would run one: "
            "write overlap queue or allow, or catch_up latest"
        )


def _check_range(name: str, what: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidRequest(f"{name}: {what} is {value:g} s: expected {duration_text(least)} to {duration_text(most)}")
