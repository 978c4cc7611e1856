"""Scheduling by a client: the meaning of `schedule`, and its requests to the gateway. No network."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import tailrace
from tailrace.model.errors import Conflict, InvalidPayload, InvalidRequest
from tailrace.model.schedule import CatchUp, Overlap, Schedule
from tailrace.sdk.conversation import Ask, Conversation, Steps
from tailrace.sdk.discovery import Found
from tailrace.sdk.scheduling import keep, pause, schedules, unschedule
from tailrace.wire.schedule_messages import schedule_to_wire
from tailrace.wire.v1 import gateway_pb2 as pb


@tailrace.function(collection="mail", priority="interactive")
async def remind(name: str, every: int = 1) -> None: ...


def asked_by(name: str, function: Any, /, *args: Any, **said: Any) -> pb.PutScheduleRequest:
    """The first request of a blocking client, which stops there."""
    with tailrace.Client("127.0.0.1:1") as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_run", next)
        step: Any = client.schedule(name, function, *args, **said)
    assert (type(step), step.method) == (Ask, "PutSchedule")
    return step.request  # type: ignore[no-any-return]


def refused(*args: Any, **said: Any) -> str:
    with pytest.raises((InvalidRequest, InvalidPayload)) as error:
        asked_by(*args, **said)
    return str(error.value)


def answered(steps: Steps[Any], *replies: Any) -> Any:
    """Result of the steps when the gateway answers so."""
    left = iter(replies)
    next(steps)
    try:
        while True:
            reply = next(left)
            steps.throw(reply) if isinstance(reply, Exception) else steps.send(reply)
    except StopIteration as end:
        return end.value


def test_it_says_what_was_said_and_the_usual_of_the_rest() -> None:
    request = asked_by("morning", remind, "Ann", cron="0 7 * * *", timezone="Europe/Berlin")
    said = request.schedule
    assert (said.name, said.function, said.payload) == ("morning", "remind", b'{"name":"Ann"}')
    assert (said.cron, said.timezone, said.collection, said.priority) == ("0 7 * * *", "Europe/Berlin", "mail", "")
    assert (said.overlap, said.catch_up, said.catch_up_max, said.grace) == ("skip", "skip", 100, 60.0)
    assert said.created_by and not request.replace
    # And with everything said
    given: dict[str, Any] = {"every": "15m", "priority": "reporting", "tenant": "t", "overlap": "queue"}
    given |= {"catch_up": "all", "catch_up_max": 7, "grace": "30s", "jitter": 1.5, "starts": 2e9, "until": 3e9}
    request = asked_by("often", "remind", name="Ann", collection="c", max_runs=5, replace=True, **given)
    said = request.schedule
    assert (said.every, said.priority, said.collection, said.tenant) == (900.0, "reporting", "c", "t")
    assert (said.overlap, said.catch_up, said.catch_up_max) == ("queue", "all", 7)
    assert (said.grace, said.jitter, said.starts, said.until, said.max_runs) == (30.0, 1.5, 2e9, 3e9, 5)
    assert request.replace


def test_a_schedules_name_comes_first_in_a_bound_method_too() -> None:
    with tailrace.Client("127.0.0.1:1") as client:
        bound = inspect.signature(client.schedule)
    assert [*bound.parameters][:4] == ["name", "function", "args", "cron"]


def test_a_moment_without_an_offset_is_one_of_the_schedules_time_zone() -> None:
    moment = datetime(2030, 1, 1, 12)
    for at, zone, expected in (
        (moment, None, moment.replace(tzinfo=UTC)),
        (moment, "Europe/Berlin", moment.replace(tzinfo=timezone(timedelta(hours=1)))),
        (moment.replace(tzinfo=UTC), "Europe/Berlin", moment.replace(tzinfo=UTC)),
    ):
        said = asked_by("once", "remind", at=at, timezone=zone).schedule
        assert (said.at, said.catch_up) == (expected.timestamp(), "latest")


def test_what_cannot_be_meant_is_refused_by_its_name() -> None:
    assert "expected one of cron, every and at, got none" in refused("x", remind, "Ann")
    assert "got cron and every" in refused("x", "remind", cron="* * * * *", every=1)
    assert "every: 'soon' is not a duration" in refused("x", "remind", every="soon")
    assert "overlap is 'some': expected one of skip, queue, allow" in refused("x", "remind", every=1, overlap="some")
    assert "at: 'now' is not a moment" in refused("x", "remind", at="now")
    assert "in the timezone 'Mars/Olympus'" in refused("x", "remind", at=datetime(2030, 1, 1), timezone="Mars/Olympus")
    assert "unknown priority 'high'" in refused("x", "remind", every=1, priority="high")
    assert "is not a schedule's name" in refused("no name", "remind", every=1)
    # An option that is also an argument of the function needs `arguments` beside it
    assert "'every' is both an argument of remind and an option" in refused("x", remind, "Ann", every=60)
    said = asked_by("x", remind, "Ann", every=60, arguments={"every": 2}).schedule
    assert (said.every, said.payload) == (60.0, b'{"name":"Ann","every":2}')
    assert "given twice" in refused("x", remind, name="Ann", cron="@daily", arguments={"name": "Bob"})


def test_what_is_kept_and_changed_is_shown_as_the_gateway_says_it() -> None:
    talk = Conversation(Found(("127.0.0.1:1",)), 10.0, lambda: 0.0)
    wanted = Schedule("x", "remind", every=60.0, overlap=Overlap.QUEUE, catch_up=CatchUp.LATEST)
    state = pb.ScheduleState(schedule=schedule_to_wire(wanted), runs=3, next=[2e9], paused=True)
    for steps in (keep(talk, wanted, True), pause(talk, "x")):
        view = answered(steps, state)
        assert (view.schedule, view.state, view.runs, view.next) == (wanted, "paused", 3, [2e9])
    assert answered(schedules(talk), pb.ListSchedulesReply(schedules=[state, state])) == [view, view]
    with pytest.raises(Conflict):
        answered(keep(talk, wanted, False), Conflict("there is one"))


def test_one_that_is_gone_already_was_removed_and_one_that_is_kept_is_an_error() -> None:
    talk = Conversation(Found(("127.0.0.1:1",)), 10.0, lambda: 0.0)
    there = pb.ScheduleState(schedule=schedule_to_wire(Schedule("x", "remind", every=60.0)))
    assert answered(unschedule(talk, "x"), there) is True
    refusal = InvalidRequest("refused")
    assert answered(unschedule(talk, "x"), refusal, pb.ListSchedulesReply()) is False
    with pytest.raises(InvalidRequest, match="refused"):
        answered(unschedule(talk, "x"), refusal, pb.ListSchedulesReply(schedules=[there]))
