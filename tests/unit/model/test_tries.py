"""Tries, how attempts went: the last ones, each reason cut."""

from __future__ import annotations

from tailrace.model.tries import KEPT, REASON_KEPT, Try, added


def test_the_last_ones_are_kept_and_a_reason_is_cut() -> None:
    tries: tuple[Try, ...] = ()
    for number in range(KEPT + 5):
        tries = added(tries, float(number), "retry", "x" * 1000)
    assert [each.at for each in tries] == [float(number) for number in range(5, KEPT + 5)]
    assert {len(each.reason) for each in tries} == {REASON_KEPT}
