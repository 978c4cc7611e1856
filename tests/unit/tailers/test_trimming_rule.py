"""Trimming behind a checkpoint: a source hears each position once, and all of it anew when it was opened again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.linger import Linger
from tailrace.tailers.rules.trimming import Trimming, apart

EVERY = 1.0


def test_each_position_is_told_once_and_at_most_so_often() -> None:
    trimming = Trimming(EVERY)
    assert trimming.wait(10.0, {"0": 0}) is None
    assert trimming.is_time(10.0) and trimming.to_tell({"0": 5}) == {"0": 5}
    trimming.heard({"0": 5})
    # Then it is told what is new, and not before its time
    assert trimming.wait(10.5, {"0": 5}) is None and trimming.wait(10.5, {"0": 6}) == 0.5
    assert not trimming.is_time(10.5) and trimming.is_time(11.0)
    assert trimming.to_tell({"0": 6, "1": 0}) == {"0": 6}


def test_what_it_did_not_hear_it_is_told_again() -> None:
    trimming = Trimming(EVERY)
    assert trimming.to_tell({"0": 5}) == {"0": 5}
    assert trimming.to_tell({"0": 5}) == {"0": 5}, "it was away"


def test_a_source_that_was_opened_again_hears_all_of_it_anew_from_an_owner() -> None:
    trimming = Trimming(EVERY)
    trimming.reopened()
    assert not trimming.must_ask({"0": 5}, asked=True), "it has heard nothing yet, and forgotten nothing"
    trimming.heard({"0": 5})
    trimming.reopened()
    assert trimming.must_ask({"0": 5}, asked=True) and trimming.wait(10.0, {"0": 5}) == 0.0
    assert trimming.to_tell({"0": 5}) == {"0": 5}
    trimming.heard({"0": 5})
    assert not trimming.must_ask({"0": 5}, asked=False) and trimming.to_tell({"0": 5}) == {}


def test_the_store_is_asked_before_anything_is_told_unless_it_spoke_just_now() -> None:
    trimming = Trimming(EVERY)
    assert trimming.must_ask({"0": 5}, asked=False) and not trimming.must_ask({"0": 5}, asked=True)
    assert not trimming.must_ask({"0": 0}, asked=False), "there is nothing to tell"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans(), st.booleans())))
def test_it_never_hears_a_position_that_is_not_durable_nor_one_twice_between_openings(
    story: list[tuple[str, int, bool, bool]],
) -> None:
    # Given checkpoints that rise, a source that is opened again, and one that does not hear everything
    trimming, durable, heard = Trimming(EVERY), dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    for name, more, reopens, hears in story:
        durable[name] += more
        if reopens:
            trimming.reopened()
            heard = dict.fromkeys("ab", 0)
        told = trimming.to_tell(durable)
        # Then it is told what it has not heard since, and that is durable
        assert told == {each: durable[each] for each in durable if durable[each] > heard[each]}
        if hears:
            trimming.heard(told)
            heard |= told


def test_commits_stand_apart_by_how_much_the_last_one_did() -> None:
    usual, held_up = Linger(0.02), Linger(0.1)
    assert apart(usual, 0.0, held_up, 3, passed=True) == usual
    assert apart(usual, 0.0, held_up, 3, passed=False) == held_up, "it moved nothing: the next one would say the same"
    assert apart(usual, 0.0, held_up, 0, passed=False) == usual, "there was none"
    assert apart(Linger(1.0), 0.05, held_up, 200, passed=True) == Linger(10.0)
