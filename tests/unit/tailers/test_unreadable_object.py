"""An object is given up only when it fails again after another one was read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.unreadable import LASTS, MOST, ReadVerdict, Unreadable


def test_one_that_is_refused_again_after_another_was_read_is_given_up() -> None:
    rule = Unreadable()
    assert rule.failed("a", True, 0.0) is ReadVerdict.UNKNOWN
    assert rule.failed("a", True, 1.0) is ReadVerdict.UNKNOWN
    rule.answered("b")
    assert rule.failed("c", True, 2.0) is ReadVerdict.UNKNOWN  # that was before it failed
    assert rule.failed("a", True, 2.0) is ReadVerdict.UNREADABLE


def test_one_that_fails_otherwise_is_tried_for_a_while_and_one_that_was_read_meanwhile_begins_anew() -> None:
    rule = Unreadable()
    rule.failed("a", False, 0.0)
    rule.answered("b")
    assert rule.failed("a", False, LASTS - 1) is ReadVerdict.LATER
    assert rule.failed("a", False, LASTS) is ReadVerdict.UNREADABLE
    rule.failed("c", False, 0.0)
    rule.answered("c")
    assert rule.failed("c", False, LASTS) is ReadVerdict.UNKNOWN


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["read", "refused", "failed"])), max_size=30))
def test_nothing_is_given_up_unless_another_was_read_between_two_of_its_failures(turns: list[tuple[str, str]]) -> None:
    rule = Unreadable()
    seen: dict[str, set[str]] = {}  # of each that fails, what was read since
    for now, (key, what) in enumerate(turns):
        if what == "read":
            rule.answered(key)
            seen.pop(key, None)
            for read in seen.values():
                read.add(key)
            continue
        given_up = rule.failed(key, what == "refused", float(now)) is ReadVerdict.UNREADABLE
        assert given_up == (what == "refused" and bool(seen.get(key)))
        if given_up:
            del seen[key]
        else:
            seen.setdefault(key, set())


def test_it_remembers_a_bounded_number() -> None:
    rule = Unreadable()
    for number in range(3 * MOST):
        rule.failed(str(number), False, 0.0)
    assert len(rule._failing) == MOST
