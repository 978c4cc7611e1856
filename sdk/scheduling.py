"""Schedules made by programs: the methods of both clients, as steps of a conversation with the gateway; `talk` is the
client's own and no argument of the method."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from ..foundation.identity import whoami
from ..model.act import reason
from ..model.errors import InvalidRequest
from ..model.priority import Priority
from ..model.schedule import CatchUp, Overlap, Schedule, check_schedule, usual_catch_up
from ..wire.schedule_messages import ScheduleView, schedule_to_wire, schedule_view
from ..wire.v1 import gateway_pb2 as pb
from .call import Call, check_clash, duration, merged, moment
from .conversation import Conversation, Steps

if TYPE_CHECKING:
    from .function import Function

Word = TypeVar("Word", bound=StrEnum)

#: Schedules in one answer; more than a store keeps.
ALL = 10_000


def schedule(
    talk: Conversation,
    name: str,
    function: Function[..., Any] | str,
    /,
    *args: Any,
    cron: str | None = None,
    every: float | str | None = None,
    at: datetime | float | None = None,
    timezone: str | None = None,
    priority: str | int | Priority | None = None,
    collection: str | None = None,
    tenant: str = "",
    overlap: str | None = None,
    catch_up: str | None = None,
    catch_up_max: int | None = None,
    grace: float | str | None = None,
    jitter: float | str | None = None,
    starts: datetime | float | None = None,
    until: datetime | float | None = None,
    max_runs: int | None = None,
    replace: bool | None = None,
    arguments: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Steps[ScheduleView]:
    """Has a function run by the clock from now on: `name` is the schedule's, the rest is as of `submit` and of
    configs/schedules.yaml (docs/guides/schedules.md). It is durable when this returns, with its next ten runs.

    cron, every, at   when: exactly one of them. every: seconds or "15m"; at, once: a datetime or wall clock seconds
    timezone          of cron, and of datetimes without an offset (default UTC)
    overlap           a run that meets the one before: skip (default), queue or allow
    catch_up          what was missed by more than `grace` ("60s"): skip (default), latest (of `at`) or all, of
                      which the newest `catch_up_max` (100) run
    jitter            each run is later by a part of it; starts, until: no run before, none after
    max_runs          so many and no more
    replace           in the place of the one of this name, if that says something else; without it Conflict is
                      raised. The same again is harmless

    Raises InvalidRequest, InvalidPayload, UnknownFunction, Conflict, and Unavailable as `submit` does.
    """
    if arguments is None and not isinstance(function, str) and hasattr(function, "parameters"):
        said = {"cron": cron, "every": every, "at": at, "timezone": timezone, "priority": priority}
        said |= {"collection": collection, "tenant": tenant or None, "overlap": overlap, "catch_up": catch_up}
        said |= {"catch_up_max": catch_up_max, "grace": grace, "jitter": jitter, "starts": starts, "until": until}
        check_clash(function, said | {"max_runs": max_runs, "replace": replace})
    given = merged(arguments or {}, kwargs)
    call = Call(function, *args, priority=priority, collection=collection, tenant=tenant, arguments=given)
    if call.headers:
        raise InvalidRequest(f"{name}: a schedule carries no Reference: give the function where it lies as text")
    zone, once = timezone or "UTC", _moment("at", at, timezone)
    wanted = Schedule(
        name,
        call.function,
        call.payload,
        cron=cron or "",
        every=_duration("every", every, 0.0),
        at=once,
        timezone=zone,
        priority="" if call.priority is None else Priority(call.priority).label,
        collection=call.collection,
        tenant=call.tenant,
        overlap=_word("overlap", overlap or Overlap.SKIP, Overlap),
        catch_up=_word("catch_up", catch_up or usual_catch_up(once), CatchUp),
        catch_up_max=100 if catch_up_max is None else catch_up_max,
        grace=_duration("grace", grace, 60.0),
        jitter=_duration("jitter", jitter, 0.0),
        starts=_moment("starts", starts, zone),
        until=_moment("until", until, zone),
        max_runs=max_runs or 0,
        created_by=whoami(),
    )
    check_schedule(wanted)
    return keep(talk, wanted, bool(replace))


def keep(talk: Conversation, schedule: Schedule, replace: bool) -> Steps[ScheduleView]:
    """Has it kept; the same twice is harmless, so a call that was not answered is made again."""
    request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace)
    return schedule_view((yield from talk.answered("PutSchedule", request)))


def schedules(talk: Conversation, name: str = "", *, next: int = 1, last: int = 0) -> Steps[list[ScheduleView]]:
    """All schedules by name, or the one of a name, each with so many coming and former runs (100 at most)."""
    request = pb.ListSchedulesRequest(name=name, limit=ALL, next=next, last=last)
    return [schedule_view(each) for each in (yield from talk.answered("ListSchedules", request)).schedules]


def unschedule(talk: Conversation, name: str, *, why: str = "") -> Steps[bool]:
    """Removes a schedule; False: there was none. What runs already goes on. `why` is kept with who asked. Raises
    InvalidRequest for one that schedules.yaml keeps."""
    try:
        yield from _change(talk, name, "remove", why)
    except InvalidRequest:
        # It may have gone at a first try whose answer was lost.
        if any(view.schedule.name == name for view in (yield from schedules(talk, next=0))):
            raise
        return False
    return True


def pause(talk: Conversation, name: str, *, why: str = "") -> Steps[ScheduleView]:
    """Fires no more until `resume_schedule`; what falls into the pause is passed over, and counted."""
    return _change(talk, name, "pause", why)


def resume(talk: Conversation, name: str, *, why: str = "") -> Steps[ScheduleView]:
    """Fires again, from the next instant on."""
    return _change(talk, name, "resume", why)


def _change(talk: Conversation, name: str, what: str, why: str) -> Steps[ScheduleView]:
    """Harmless when it is so already."""
    request = pb.ChangeScheduleRequest(name=name, what=what, who=whoami(), why=reason(why))
    return schedule_view((yield from talk.answered("ChangeSchedule", request)))


def _duration(option: str, value: float | str | None, usual: float) -> float:
    return usual if value is None else duration(option, value)


def _moment(option: str, value: datetime | float | None, timezone: str | None) -> float:
    """Wall clock seconds; a datetime without an offset is one of the schedule's time zone."""
    if value is None:
        return 0.0
    if isinstance(value, datetime):
        try:
            return (value if value.tzinfo else value.replace(tzinfo=ZoneInfo(timezone or "UTC"))).timestamp()
        except (ValueError, OSError, OverflowError, KeyError) as error:  # KeyError: no such zone
            raise InvalidRequest(f"{option}: {value} in the timezone {timezone!r} is not a moment: {error}") from None
    return moment(option, value)


def _word(option: str, text: str, words: type[Word]) -> Word:
    if text not in list(words):
        raise InvalidRequest(f"{option} is {text!r:.50}: expected one of {', '.join(words)}")
    return words(text)
