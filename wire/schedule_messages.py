"""Schedules ↔ messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..model.errors import InvalidRequest
from ..model.schedule import CatchUp, Origin, Overlap, Schedule, ScheduledRun, ScheduleRow, usual_catch_up
from .v1 import gateway_pb2 as pb

#: The fields of a schedule that its owner says.
_SAID = [field.name for field in fields(Schedule) if field.name != "paused_with"]


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule for people: its state, when its next runs are due, and its last runs, the newest first."""

    schedule: Schedule
    paused: bool
    over: bool
    runs: int
    passed_over: int
    next: list[float]
    last: list[ScheduledRun]

    @property
    def state(self) -> str:
        """The state in one word: `active`, `paused` or `over`."""
        return "paused" if self.paused else "over" if self.over else "active"


def schedule_to_wire(schedule: Schedule) -> pb.Schedule:
    """A schedule as a message."""
    return pb.Schedule(**{name: getattr(schedule, name) for name in _SAID})


def schedule_from_wire(message: pb.Schedule) -> Schedule:
    """The inverse of `schedule_to_wire`, with defaults for empty fields. Raises InvalidRequest for unknown words."""
    said = {name: getattr(message, name) for name in _SAID}
    usual = Schedule("", "")
    for name in ("timezone", "catch_up_max", "grace"):
        said[name] = said[name] or getattr(usual, name)
    said["overlap"] = _word("overlap", message.overlap or usual.overlap, Overlap)
    said["catch_up"] = _word("catch_up", message.catch_up or usual_catch_up(message.at), CatchUp)
    said["origin"] = _word("origin", message.origin or usual.origin, Origin)
    return Schedule(**said)


def _word(name: str, text: str, words: type[Overlap] | type[CatchUp] | type[Origin]) -> Overlap | CatchUp | Origin:
    try:
        return words(text)
    except ValueError:
        raise InvalidRequest(f"{name} is {text!r:.50}: expected one of {', '.join(words)}") from None


def state_to_wire(row: ScheduleRow, next: Sequence[float], last: Sequence[ScheduledRun]) -> pb.ScheduleState:
    """The state of a schedule, with coming and former runs, as a message."""
    return pb.ScheduleState(
        schedule=schedule_to_wire(row.schedule),
        paused=row.paused,
        over=row.over,
        runs=row.runs,
        passed_over=row.passed_over,
        next=next,
        last=[
            pb.ScheduleRun(position=run.position, instant=run.instant, fired_at=run.fired_at, by_hand=run.by_hand)
            for run in last
        ],
    )


def schedule_view(message: pb.ScheduleState) -> ScheduleView:
    """A schedule for people, from the message."""
    schedule = schedule_from_wire(message.schedule)
    return ScheduleView(
        schedule,
        message.paused,
        message.over,
        int(message.runs),
        int(message.passed_over),
        list(message.next),
        [
            ScheduledRun(int(run.position), schedule.name, 0, run.instant, run.fired_at, run.by_hand)
            for run in message.last
        ],
    )
