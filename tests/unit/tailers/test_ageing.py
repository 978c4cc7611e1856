"""Ageing of retries: the oldest that is due and waits, and the most attempts of any that is not over."""

from __future__ import annotations

from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.tailers.ageing import MOST, RetryAgeing

MAIL = Kind("mail", 0)


def parked(id: str, due: float, attempt: int, kind: Kind = MAIL) -> Parked:
    return Parked("orders", id, kind, b"", due, 0.0, attempt)


def test_a_retry_ages_from_its_due_time_until_it_is_over_however_often_it_comes_back() -> None:
    ages = RetryAgeing()
    # Given two retries, of which one is due
    ages.seen([parked("a", 100.0, 3), parked("b", 500.0, 2), parked("c", 0.0, 9, Kind(""))])
    assert ages.ages(160.0) == [("mail", 0, 60.0, 2)]
    # When it is handed out it waits no longer, but its attempts still count
    ages.started(["a", "unknown"])
    assert ages.ages(160.0) == [("mail", 0, 0.0, 2)]
    # When it fails and is parked again, its attempts rise
    ages.seen([parked("a", 900.0, 4)])
    assert ages.ages(160.0) == [("mail", 0, 0.0, 3)]
    assert ages.ages(960.0) == [("mail", 0, 460.0, 3)]
    # When it is over, only the other one is left
    ages.over("a")
    assert ages.ages(560.0) == [("mail", 0, 60.0, 1)]
    ages.clear()
    assert ages.ages(560.0) == []


def test_little_is_kept_however_much_fails() -> None:
    ages = RetryAgeing()
    ages.seen(parked(str(number), float(number), 2) for number in range(MOST + 500))
    assert len(ages._live) == MOST
