"""Start delays: each item that is sent is counted once, with all that it had waited, however assignments are cut."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.outcome import Outcome
from tailrace.model.workload import INDEX_BITS, Ended, Flight, Kind
from tailrace.scheduler.delays import FLIGHTS, Delays
from tailrace.scheduler.rules.lanes import Item

MAIL, SCAN = Kind("mail", 0, "", "ann"), Kind("scan", 2, "", "bob")


class Session:
    """A session that pushes."""


def flight(number: int, kinds: list[Kind], waited: list[float]) -> Flight:
    size = len(kinds)
    return Flight(number, 1, kinds, ["a"] * size, [b""] * size, [1] * size, waited=waited)


def items(session: Session, pushed: Flight) -> list[Item]:
    base = pushed.number << INDEX_BITS
    return [(session, base | at, "a", b"", kind, 1, 1, None) for at, kind in enumerate(pushed.kinds)]


FLIGHTS_OF = st.lists(
    st.lists(st.tuples(st.sampled_from([MAIL, SCAN]), st.floats(-1, 10_000)), min_size=1, max_size=20),
    min_size=1,
    max_size=6,
)


@given(FLIGHTS_OF, st.data())
def test_each_item_is_counted_once_however_assignments_are_cut(
    flights: list[list[tuple[Kind, float]]], data: Any
) -> None:
    delays, session = Delays(), Session()
    waiting: list[Item] = []
    for number, rows in enumerate(flights, 1):
        pushed = flight(number, [kind for kind, _ in rows], [before for _, before in rows])
        delays.pushed(session, pushed, 100.0)
        waiting += items(session, pushed)
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
    # And nothing is remembered of what is over
    assert not delays._flights and not delays._open


def test_what_goes_back_is_counted_by_its_reason() -> None:
    delays, session = Delays(), Session()
    delays.pushed(session, flight(1, [MAIL] * 3, []), 100.0)
    ends = {
        1 << INDEX_BITS: Ended(Outcome.HELD, "paused"),
        1 << INDEX_BITS | 1: Ended(Outcome.HELD, "its worker said something of its own: not a code"),
        1 << INDEX_BITS | 2: Ended(Outcome.FATAL, "no"),
        9 << INDEX_BITS: Ended(Outcome.HELD, "paused"),  # of a session that was adopted
    }
    delays.ended(session, ends, 107.0)
    assert {labels: counts.count for labels, counts in delays.waits.by_labels.items()} == {
        ("interactive", "paused"): 1,
        ("interactive", "handed_back"): 1,
    }


def test_what_never_ends_is_forgotten() -> None:
    delays, session = Delays(), Session()
    for number in range(1, FLIGHTS + 100):
        delays.pushed(session, flight(number, [MAIL], [1.0]), 1.0)
    assert len(delays._flights) == len(delays._open) == FLIGHTS
