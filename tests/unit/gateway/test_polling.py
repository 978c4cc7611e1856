"""Polling for a workload that somebody waits for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.polling import PAUSES, READS_PER_SECOND, Polling


def looks(polling: Polling[str], until: float) -> list[tuple[float, list[str]]]:
    made = []
    while (due := polling.next()) is not None and due <= until:
        made.append((round(due, 6), polling.take(due, 100)))
    return made


def test_one_waiter_is_looked_for_quickly_and_then_ever_more_slowly() -> None:
    polling: Polling[str] = Polling()
    polling.add("a", 0.0)
    assert [due for due, _ in looks(polling, 0.2)] == [0.001, 0.003, 0.008, 0.018, 0.038, 0.088, 0.138, 0.188]


def test_looks_that_are_close_together_are_one() -> None:
    # Given two who began to wait within half a millisecond
    polling: Polling[str] = Polling()
    polling.add("a", 0.0)
    polling.add("b", 0.0003)
    # When they are looked for, then together, always
    assert all(sorted(taken) == ["a", "b"] for _, taken in looks(polling, 0.2))


def test_a_waiter_that_was_removed_is_not_looked_for() -> None:
    polling: Polling[str] = Polling()
    polling.add("a", 0.0)
    polling.remove("a")
    polling.remove("a")
    assert polling.next() is None
    assert polling.take(1.0, 10) == []


def test_one_that_comes_back_starts_quickly_again() -> None:
    polling: Polling[str] = Polling()
    polling.add("a", 0.0)
    looks(polling, 1.0)
    polling.remove("a")
    polling.add("a", 1.0)
    assert polling.next() == 1.001


def test_however_many_wait_the_reads_per_second_are_bounded() -> None:
    # Given 10,000 who have been waiting for a while
    polling: Polling[str] = Polling()
    for number in range(10_000):
        polling.add(str(number), 0.0)
    while (due := polling.next()) is not None and due < 2.0:
        polling.take(due, 1000)
    # When they go on waiting for two seconds, then there are no more reads than the bound
    reads = 0
    while (due := polling.next()) is not None and due < 4.0:
        reads += len(polling.take(due, 1000))
    assert 0.5 * READS_PER_SECOND < reads / 2 <= 1.1 * READS_PER_SECOND


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.floats(0, 0.1)), max_size=50), st.integers(1, 5))
def test_everybody_who_waits_is_looked_for_within_the_longest_pause_and_nobody_else(
    steps: list[tuple[str, bool, float]], limit: int
) -> None:
    polling: Polling[str] = Polling()
    waiting: set[str] = set()
    now = 0.0
    for waiter, comes, later in steps:
        now += later
        if comes and waiter not in waiting:
            polling.add(waiter, now)
            waiting.add(waiter)
        elif not comes:
            polling.remove(waiter)
            waiting.discard(waiter)
        taken = polling.take(now, limit)
        assert len(taken) <= limit and set(taken) <= waiting and len(set(taken)) == len(taken)
        assert len(polling) == len(waiting)
        assert (polling.next() is None) == (not waiting)
    # After a while without a limit everybody was looked for
    found: set[str] = set()
    end = now + PAUSES[-1]
    while (due := polling.next()) is not None and due <= end:
        found |= set(polling.take(max(due, now), 100))
    assert found == waiting
