"""Start delays: each item that is sent is counted once, with all that it had waited, however assignments are cut."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.outcome import Outcome
from tailrace.model.workload import INDEX_BITS, Ended, Flight, Kind
from tailrace.scheduler.rules.flow import Item
from tailrace.scheduler.sessions import TailerSession
from tailrace.scheduler.start_delays import EXACT, ONE_IN, SPARE, StartDelays

MAIL, SCAN = Kind("mail", 0, "", "ann"), Kind("scan", 2, "", "bob")


def session() -> TailerSession:
    return TailerSession("s", "tailer", 1, 0.0)


def flight(number: int, kinds: list[Kind], waited: list[float]) -> Flight:
    size = len(kinds)
    return Flight(number, 1, kinds, ["a"] * size, [b""] * size, [1] * size, waited=waited)


def items(tailer: TailerSession, pushed: Flight) -> list[Item]:
    base = pushed.number << INDEX_BITS
    return [(tailer, base | at, "a", b"", kind, 1, 1, None, None) for at, kind in enumerate(pushed.kinds)]


FLIGHTS_OF = st.lists(
    st.lists(st.tuples(st.sampled_from([MAIL, SCAN]), st.floats(-1, 10_000)), min_size=1, max_size=16),
    min_size=1,
    max_size=6,
)


@given(FLIGHTS_OF, st.data())
def test_each_item_is_counted_once_however_assignments_are_cut(
    flights: list[list[tuple[Kind, float]]], data: Any
) -> None:
    delays, tailer = StartDelays(), session()
    waiting: list[Item] = []
    for number, rows in enumerate(flights, 1):
        pushed = flight(number, [kind for kind, _ in rows], [before for _, before in rows])
        delays.pushed(tailer, pushed, 100.0)
        waiting += items(tailer, pushed)
    waiting = data.draw(st.permutations(waiting))
    while waiting:
        cut = data.draw(st.integers(1, len(waiting)))
        delays.assigned(waiting[:cut], 103.0)
        waiting = waiting[cut:]
    for kind, level in ((MAIL, "interactive"), (SCAN, "eventual")):
        known = [before for rows in flights for each, before in rows if each == kind and before >= 0]
        of = kind.function, level
        assert (delays.starts.by_labels[of].count if of in delays.starts.by_labels else 0) == len(known)
        if known:
            assert abs(delays.starts.by_labels[of].sum - sum(known) - 3 * len(known)) < 1e-3
    assert sum(counts.count for counts in delays.waits.by_labels.values()) == sum(map(len, flights))


def test_what_goes_back_is_counted_by_its_reason() -> None:
    delays, tailer = StartDelays(), session()
    delays.pushed(tailer, flight(1, [MAIL] * 3, []), 100.0)
    ends = {
        1 << INDEX_BITS: Ended(Outcome.HELD, "paused"),
        1 << INDEX_BITS | 1: Ended(Outcome.HELD, "its worker said something of its own: not a code"),
        1 << INDEX_BITS | 2: Ended(Outcome.FATAL, "no"),
        9 << INDEX_BITS: Ended(Outcome.HELD, "paused"),  # of a session that was adopted
    }
    delays.ended(tailer, ends, 107.0)
    assert {labels: counts.count for labels, counts in delays.waits.by_labels.items()} == {
        ("interactive", "paused"): 1,
        ("interactive", "handed_back"): 1,
    }


@given(st.lists(st.integers(1, 256), min_size=1, max_size=60), st.booleans())
def test_of_many_items_one_assignment_stands_for_all(sizes: list[int], rest: bool) -> None:
    # Given a second that has had as many items as are counted one by one
    delays, tailer = StartDelays(), session()
    before = [256] * (EXACT // 256 + 1)
    for number, size in enumerate([*before, *sizes], 1):
        pushed = flight(number, [MAIL] * size, [float(number)] * min(size, 16))
        delays.pushed(tailer, pushed, 100.0)
        delays.assigned(items(tailer, pushed), 100.5)
    # Then what was counted of all others is as many as they are, but for less than the assignments between two looks
    counted = delays.waits.by_labels["interactive", "started"].count - sum(before)
    missing = sum(sizes) - counted
    assert 0 <= missing < (ONE_IN + 1) * 256
    assert delays.starts.by_labels["mail", "interactive"].count == counted + sum(before)


def test_a_few_due_times_speak_for_their_neighbours() -> None:
    delays, tailer = StartDelays(), session()
    pushed = flight(1, [MAIL] * 160, [float(tenth) for tenth in range(16)])
    delays.pushed(tailer, pushed, 100.0)
    delays.assigned(items(tailer, pushed), 100.0)
    assert delays.starts.by_labels["mail", "interactive"].sum == sum(10 * tenth for tenth in range(16))


def test_flights_that_are_held_are_remembered_and_others_are_forgotten() -> None:
    # Given flights of which every second one has ended at once
    delays, tailer = StartDelays(), session()
    most = 6 * SPARE
    for number in range(1, most):
        tailer.held.add(number, 200.0, 1)
        delays.pushed(tailer, flight(number, [MAIL], [1.0]), 1.0)
        if number % 2:
            tailer.held.end(number, 1)
    # When all that are held are sent at last
    held = list(tailer.held.flights)
    for number in held:
        delays.assigned(items(tailer, flight(number, [MAIL], [1.0])), float(number))
    # Then each was remembered, and of the others a bounded number
    assert delays.waits.by_labels["interactive", "started"].count == len(held)
    assert len(delays._arrivals) <= 2 * len(held) + SPARE
