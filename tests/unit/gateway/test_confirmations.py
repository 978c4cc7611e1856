"""Confirmations: each scheduler has in force what it said last, and one that was cut off is remembered for a while."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.confirmations import MOST, REMEMBERED, Confirmations
from tailrace.model.quotas_in_force import InForce


def test_one_that_watches_has_said_nothing_until_it_confirms() -> None:
    known = Confirmations()
    known.watches("a")
    assert known.all(1.0) == [InForce("a")]
    assert known.confirmed("a", 7, 2.0)
    assert known.all(3.0) == [InForce("a", 7, 2.0)]


def test_one_that_watches_again_has_what_it_said_and_one_watch_of_two_is_enough() -> None:
    known = Confirmations()
    known.watches("a")
    known.confirmed("a", 7, 2.0)
    known.watches("a")
    known.ended("a", 3.0)
    assert known.all(4.0) == [InForce("a", 7, 2.0)]
    known.ended("a", 5.0)
    assert known.all(6.0) == [InForce("a", 7, 2.0, 5.0)]


def test_a_stranger_confirms_nothing() -> None:
    known = Confirmations()
    assert not known.confirmed("a", 7, 1.0)
    known.ended("a", 2.0)
    assert known.all(3.0) == []


def test_one_that_was_cut_off_is_told_for_a_while_and_then_forgotten() -> None:
    known = Confirmations()
    known.watches("a")
    known.ended("a", 10.0)
    assert [each.ended for each in known.all(10.0 + REMEMBERED)] == [10.0]
    assert known.all(10.1 + REMEMBERED) == []


def test_a_clock_that_was_set_back_keeps_nobody_for_ever() -> None:
    known = Confirmations()
    known.watches("a")
    known.ended("a", 1e6)
    assert known.all(10.0) == []


def test_of_many_that_come_and_go_the_last_ones_are_kept() -> None:
    known = Confirmations()
    for number in range(MOST + 50):
        known.watches(f"s{number:05}")
        known.ended(f"s{number:05}", 10.0)
    kept = [each.scheduler for each in known.all(11.0)]
    assert (len(kept), kept[0]) == (MOST, "s00050")


@given(st.lists(st.tuples(st.sampled_from("wec"), st.sampled_from("abc"), st.floats(0, 700)), max_size=60))
def test_whatever_happens_those_that_watch_are_told(steps: list[tuple[str, str, float]]) -> None:
    known, watching, now = Confirmations(), {"a": 0, "b": 0, "c": 0}, 0.0
    for what, name, later in steps:
        now += later
        if what == "w":
            known.watches(name)
            watching[name] += 1
        elif what == "e" and watching[name]:
            known.ended(name, now)
            watching[name] -= 1
        elif what == "c":
            assert known.confirmed(name, int(now), now) is bool(watching[name])
        rows = {each.scheduler: each for each in known.all(now)}
        assert {each for each, count in watching.items() if count} == {n for n, row in rows.items() if not row.ended}
        assert all(now - row.ended <= REMEMBERED for row in rows.values() if row.ended)
