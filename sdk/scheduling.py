"""Schedules made by programs: methods of both clients, as steps of a conversation with the gateway. The client gives
`talk`; it is no argument of its methods."""

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
    """Makes a schedule, by which a function runs from now on. `name` is the schedule's; the other options are those of
    `submit` and of configs/schedules.yaml (docs/guides/schedules.md). The schedule is durable when this returns it,
    with its next ten runs.

    cron, every, at   the times, by exactly one of them. cron: five fields; every: seconds or "15m"; at: once, at a
                      datetime or wall clock seconds
    timezone          of cron, and of datetimes without an offset (default UTC)
    overlap           for a run that is due while the one before runs: skip (default), queue or allow
    catch_up          for runs missed by more than `grace` (default "60s"): skip (default), latest (default with `at`),
                      or all, of which the newest `catch_up_max` (100) run
    jitter            seconds or "30s": each run is later by some part of it (default 0)
    starts, until     no run before, none after
    max_runs          number of runs after which it is over (default: no limit)
    replace           whether it replaces a schedule of this name that differs (default: no, Conflict is raised); an
                      equal one is left as it is

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
        raise InvalidRequest(f"{name}: a schedule takes no Reference: pass the place of the object as text")
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
    """Stores a schedule. An equal one is left as it is, so a call that was not answered is made again."""
    request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace)
    return schedule_view((yield from talk.answered("PutSchedule", request)))


def schedules(talk: Conversation, name: str = "", *, next: int = 1, last: int = 0) -> Steps[list[ScheduleView]]:
    """All schedules by name, or the one of this name, each with `next` coming and `last` former runs (100 at most)."""
    request = pb.ListSchedulesRequest(name=name, limit=ALL, next=next, last=last)
    return [schedule_view(each) for each in (yield from talk.answered("ListSchedules", request)).schedules]


def unschedule(talk: Conversation, name: str, *, why: str = "") -> Steps[bool]:
    """Removes a schedule; False: there was none. A run that has begun goes on. `why` is kept with the name of the
    caller. Raises InvalidRequest for a schedule that schedules.yaml keeps."""
    try:
        yield from _change(talk, name, "remove", why)
    except InvalidRequest:
        # It may have gone at a first try whose answer was lost.
        if any(view.schedule.name == name for view in (yield from schedules(talk, next=0))):
            raise
        return False
    return True


def pause(talk: Conversation, name: str, *, why: str = "") -> Steps[ScheduleView]:
    """Stops a schedule until `resume_schedule`; runs that fall into the pause are passed over, and counted."""
    return _change(talk, name, "pause", why)


def resume(talk: Conversation, name: str, *, why: str = "") -> Steps[ScheduleView]:
    """Lets a paused schedule run again, from its next instant on."""
    return _change(talk, name, "resume", why)


def _change(talk: Conversation, name: str, what: str, why: str) -> Steps[ScheduleView]:
    """Changes a schedule. Harmless when it is so already."""
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
