"""Schedules made by programs: what a client's `schedule` means, and what is said to the gateway for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from .call import Call, check_clash, merged
from .conversation import Conversation, Steps
from .identity import whoami
from .model.errors import InvalidRequest
from .model.priority import Priority
from .model.schedule import CatchUp, Overlap, Schedule, check_schedule, usual_catch_up
from .model.units import seconds
from .wire.schedule_messages import ScheduleView, schedule_to_wire, schedule_view
from .wire.v1 import gateway_pb2 as pb

if TYPE_CHECKING:
    from .function import Function

Word = TypeVar("Word", bound=StrEnum)

#: Schedules in one answer; more than a store keeps.
ALL = 10_000


def scheduled(
    name: str, function: Function[..., Any] | str, args: Sequence[Any], kwargs: Mapping[str, Any], **options: Any
) -> Schedule:
    """The schedule that the arguments of `Client.schedule` mean. Raises InvalidRequest, InvalidPayload."""
    given = options.pop("arguments")
    if given is None and not isinstance(function, str) and hasattr(function, "parameters"):
        check_clash(function, options)
    labels = {each: options[each] for each in ("priority", "collection", "tenant")}
    call = Call(function, *args, **labels, arguments=merged(given or {}, dict(kwargs)))
    if call.headers:
        raise InvalidRequest(f"{name}: a schedule carries no Reference: give the function where it lies as text")
    zone, at = options["timezone"] or "UTC", _moment("at", options["at"], options["timezone"])
    schedule = Schedule(
        name,
        call.function,
        call.payload,
        cron=options["cron"] or "",
        every=_duration("every", options["every"], 0.0),
        at=at,
        timezone=zone,
        priority="" if call.priority is None else Priority(call.priority).label,
        collection=call.collection,
        tenant=call.tenant,
        overlap=_word("overlap", options["overlap"] or Overlap.SKIP, Overlap),
        catch_up=_word("catch_up", options["catch_up"] or usual_catch_up(at), CatchUp),
        catch_up_max=100 if options["catch_up_max"] is None else options["catch_up_max"],
        grace=_duration("grace", options["grace"], 60.0),
        jitter=_duration("jitter", options["jitter"], 0.0),
        starts=_moment("starts", options["starts"], zone),
        until=_moment("until", options["until"], zone),
        max_runs=options["max_runs"] or 0,
        created_by=whoami(),
    )
    check_schedule(schedule)
    return schedule


def keep(talk: Conversation, schedule: Schedule, replace: bool) -> Steps[ScheduleView]:
    """Has it kept; the same twice is harmless, so a call that was not answered is made again."""
    request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace)
    return schedule_view((yield from talk.answered("PutSchedule", request)))


def listed(talk: Conversation, name: str, next: int, last: int) -> Steps[list[ScheduleView]]:
    """All by name, or the one of a name."""
    request = pb.ListSchedulesRequest(name=name, limit=ALL, next=next, last=last)
    return [schedule_view(each) for each in (yield from talk.answered("ListSchedules", request)).schedules]


def change(talk: Conversation, name: str, what: str) -> Steps[ScheduleView]:
    """Pauses or resumes one; harmless when it is so already."""
    return schedule_view((yield from talk.answered("ChangeSchedule", pb.ChangeScheduleRequest(name=name, what=what))))


def remove(talk: Conversation, name: str) -> Steps[bool]:
    """Whether there was one. A refusal may mean that it went at a first try whose answer was lost: so it is looked
    for then."""
    try:
        yield from change(talk, name, "remove")
    except InvalidRequest:
        if any(view.schedule.name == name for view in (yield from listed(talk, "", 0, 0))):
            raise
        return False
    return True


def _duration(option: str, value: float | str | None, usual: float) -> float:
    try:
        return usual if value is None else seconds(value)
    except InvalidRequest as error:
        raise InvalidRequest(f"{option}: {error}") from None


def _moment(option: str, value: datetime | float | None, timezone: str | None) -> float:
    """Wall clock seconds; a datetime without an offset is one of the schedule's time zone."""
    if value is None:
        return 0.0
    if isinstance(value, datetime):
        try:
            return (value if value.tzinfo else value.replace(tzinfo=ZoneInfo(timezone or "UTC"))).timestamp()
        except (ValueError, OSError, OverflowError, KeyError) as error:  # KeyError: no such zone
            raise InvalidRequest(f"{option}: {value} in the timezone {timezone!r} is not a moment: {error}") from None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    raise InvalidRequest(f"{option}: {value!r} is not a moment: expected a datetime or wall clock seconds since 1970")


def _word(option: str, text: str, words: type[Word]) -> Word:
    if text not in list(words):
        raise InvalidRequest(f"{option} is {text!r:.50}: expected one of {', '.join(words)}")
    return words(text)
