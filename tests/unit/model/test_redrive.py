"""Redrive: the dead letters that may be redriven, their tokens, and the past that they bring along."""

from __future__ import annotations

from dataclasses import replace

from tailrace.model.claim import State
from tailrace.model.dead_letter import JOB_ITEM, DeadLetter
from tailrace.model.fence import fence_at
from tailrace.model.redrive import (
    DEATHS_KEPT,
    NOTE_KEPT,
    ORIGIN,
    REASON_KEPT,
    STREAM_ORIGIN,
    came_back,
    headers_of,
    homeless,
    past_of,
    refusal,
    shown,
    token,
)
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


def test_a_redriven_workload_shows_its_first_id_and_a_fence_of_where_it_came_from() -> None:
    # Given an item of a stream that died, and once more after a redrive
    letter = replace(LETTER, position=17, headers=(("a", "b"),))
    once = headers_of(letter)
    again = headers_of(replace(letter, id="0" * 16, position=-1, headers=once, past=past_of(letter)))
    assert once == again == (("a", "b"), (STREAM_ORIGIN, "orders/0/17"))
    # Then its function sees the first id, the letter's headers, and a fence on the stream's scale
    claimed = 1_700_000_000_000_000
    assert shown("1" * 16, claimed, again) == ("orders/0/17", fence_at(claimed), (("a", "b"),))
    # And what came from a queue keeps the fences of its queue
    queued = headers_of(replace(letter, id="2" * 16, position=-1))
    assert shown("3" * 16, claimed, queued) == ("2" * 16, claimed, (("a", "b"),))


def test_an_origin_is_believed_of_what_was_redriven_and_of_nothing_else() -> None:
    forged = ((STREAM_ORIGIN, "mine"),)
    assert headers_of(replace(LETTER, headers=forged)) == ((ORIGIN, "orders/0/17"),)
    # A record of a stream may bear any header
    assert shown("orders/0/18", 5, forged) == ("orders/0/18", 5, forged)
    assert shown("4" * 16, 5, (("a", "b"),)) == ("4" * 16, 5, (("a", "b"),))
