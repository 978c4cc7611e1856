"""Calls that are acts, and those that only look."""

from __future__ import annotations

from tailrace.gateway.rules.acts import ACTS, NAMED, OUTCOMES, listed
from tailrace.model.act import STATE, Act, act_from_text, act_to_text, bounded
from tailrace.model.token_calls import CALLS

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
    assert OUTCOMES.keys() <= ACTS.keys()


def test_lists_are_bounded() -> None:
    assert listed(f"{n}" for n in range(NAMED)).endswith(f", {NAMED - 1}")
    assert listed(f"{n}" for n in range(NAMED + 5)).endswith(f", {NAMED - 1} and 5 more")
    assert listed([]) == ""


def test_an_act_is_of_bounded_texts_that_can_be_written() -> None:
    act = bounded(Act(3, 5.0, "ann\udcff", "here", "quota set", "x" * 10_000, "why", "y" * 10_000))
    assert act.who == "ann\\udcff" and len(act.before) == STATE
    assert act_from_text(3, act_to_text(act)) == act
    assert act_from_text(3, '{"what": "reload", "a later version": 1}', "done").outcome == "done"
