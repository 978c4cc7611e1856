"""Calls that are acts, and those that only look."""

from __future__ import annotations

import json
import math
from typing import Any

import typer

from tailrace import cli
from tailrace.gateway.rules.act_pages import PAGES
from tailrace.gateway.rules.acts import ACTS, NAMED, OUTCOMES, StateBefore, act_of, listed
from tailrace.model.act import STATE, Act, act_from_text, act_to_text, bounded
from tailrace.model.limits import Snapshot
from tailrace.model.token_calls import CALLS
from tailrace.wire.v1 import gateway_pb2 as pb

#: Calls that need the right to operate or administer and are no acts: they look, or a part tells something.
LOOKS = {
    "Scheduler/Record",
    "Operators/Call acts.acts",
    "Operators/Call tokens.tokens",
}


def test_every_call_that_needs_an_operators_right_is_an_act() -> None:
    operate = {name for name, call in CALLS.items() if call.action in ("operate", "administer")} - LOOKS
    names = {name.removeprefix("Gateway/").removeprefix("Operators/Call ") for name in operate}
    assert names - ACTS.keys() == set()
    assert ACTS.keys() - names == set()
    assert OUTCOMES.keys() | PAGES.keys() <= ACTS.keys()


def test_lists_are_bounded() -> None:
    assert listed(f"{n}" for n in range(NAMED)).endswith(f", {NAMED - 1}")
    assert listed(f"{n}" for n in range(NAMED + 5)).endswith(f", {NAMED - 1} and 5 more")
    assert listed([]) == ""


def test_an_act_is_of_bounded_texts_that_can_be_written() -> None:
    act = bounded(Act(3, 5.0, "ann\udcff", "here", "quota set", "x" * 10_000, "why", "y" * 10_000))
    assert act.who == "ann\\udcff" and len(act.before) == STATE
    assert act_from_text(3, act_to_text(act)) == act
    assert act_from_text(3, '{"what": "reload", "a later version": 1}', "done").outcome == "done"


def test_every_command_that_is_an_act_takes_a_reason() -> None:
    # Given the commands that make calls which are acts
    commands = [
        *("cancel", "reschedule", "reload"),
        *(f"schedule {name}" for name in ("add", "pause", "resume", "run-now", "remove")),
        *(f"job {name}" for name in ("cancel", "pause", "resume", "retry", "delete")),
        *("dead redrive", "dead purge", "auth token create", "auth token revoke"),
        *("gate pause", "gate drop", "gate resume", "quota set", "quota unset", "quota apply", "quota rollback"),
        *("tailer pause", "tailer resume", "tailer seek", "tailer forget", "replay start"),
        *(f"replay {name}" for name in ("pause", "resume", "cancel")),
    ]
    # Then each takes --why
    root: Any = typer.main.get_command(cli.app)
    without = []
    for words in commands:
        command = root
        for word in words.split():
            command = command.commands[word]
        if not any("--why" in each.opts for each in command.params):
            without.append(words)
    assert without == []


def test_a_schedule_of_no_calendar_is_told_all_the_same() -> None:
    message = pb.Schedule(name="x", function="f", at=float("inf"), every=float("nan"))
    act = act_of("PutSchedule", {"request": pb.PutScheduleRequest(schedule=message)}, StateBefore(Snapshot()))
    assert act is not None and json.loads(act.after)["at"] == math.inf
