"""Redrive: the dead letters that may be redriven, their tokens, and the past that they bring along."""

from __future__ import annotations

from dataclasses import replace

from tailrace.model.claim import State
from tailrace.model.dead_letter import JOB_ITEM, DeadLetter
from tailrace.model.redrive import DEATHS_KEPT, NOTE_KEPT, REASON_KEPT, came_back, homeless, past_of, refusal, token
from tailrace.model.workload import Kind

LETTER = DeadLetter("orders/0/17", "orders", Kind("charge"), b"{}", "fatal", "no such card", 3, 1, 1.0, 2.0)


def died_again(times: int) -> DeadLetter:
    """The letter after so many redrives."""
    letter = LETTER
    for number in range(times):
        letter = replace(letter, id=f"{number:016x}", tailer="queue", died_at=10.0 + number, past=past_of(letter))
    return letter


def test_a_letter_that_comes_back_too_often_is_refused_with_what_to_do() -> None:
    assert refusal(died_again(9), 10, known=True) == ""
    said = refusal(died_again(10), 10, known=True)
    assert "10 times" in said
    assert "max_redrives" in said
    assert refusal(LETTER, 0, known=True) != ""


def test_a_function_that_nobody_has_is_refused() -> None:
    assert "'charge'" in refusal(LETTER, 10, known=False)
    assert "names no function" in refusal(replace(LETTER, kind=Kind("")), 10, known=False)


def test_a_letter_stays_whose_workload_runs_again_or_ended_otherwise_since() -> None:
    assert {state for state in State if "not ended" in came_back(state)} == {s for s in State if s < State.SUCCESS}
    assert {state for state in State if "purge" in came_back(state)} == {State.SUCCESS, State.CANCELLED}
    assert came_back(State.FATAL_FAILURE) == ""


def test_a_token_is_of_one_death_of_one_workload() -> None:
    assert token(LETTER) == token(replace(LETTER, reason="said otherwise", number=9))
    others = [replace(LETTER, id="orders/0/18"), replace(LETTER, died_at=2.000001)]
    assert len({token(each) for each in (LETTER, *others)}) == 3


def test_the_past_names_the_first_origin_and_each_death() -> None:
    past = past_of(died_again(2))
    assert (past.tailer, past.id, past.first_seen, past.redrives) == ("orders", "orders/0/17", 1.0, 3)
    assert [death.died_at for death in past.deaths] == [2.0, 10.0, 11.0]
    assert past.deaths[0].reason == "no such card"


def test_the_past_is_bounded() -> None:
    letter = replace(died_again(DEATHS_KEPT + 5), reason="x" * 10_000, progress="y" * 10_000)
    past = past_of(letter)
    assert (past.redrives, len(past.deaths)) == (DEATHS_KEPT + 6, DEATHS_KEPT)
    assert (len(past.deaths[-1].reason), len(past.deaths[-1].progress)) == (REASON_KEPT, NOTE_KEPT)


def test_the_letter_of_a_jobs_item_stays_when_no_job_knows_of_it() -> None:
    assert homeless(replace(LETTER, headers=(("color", "red"),))) == ""
    assert "purge it" in homeless(replace(LETTER, headers=(JOB_ITEM,)))
