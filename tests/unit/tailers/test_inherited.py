"""Adopted items at a tailer: whichever comes first, record or outcome, waits for the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.audit import Fate
from tailrace.model.demand import Cell
from tailrace.model.ledger import NOT_YET, LedgerEntry, LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind, Outcomes, ref
from tailrace.sdk.source import StreamBatch
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.items import Items
from tailrace.tailers.mapping.mapping import Mapped
from tailrace.tailers.partition import Partition
from tailrace.tailers.rules.flight_numbers import OWN, flight_here, flights_of, ref_here
from tailrace.tailers.session import Inheritance
from tailrace.tailers.takeover.inherited import Inherited, InheritedItem

PART = Partition("0", Mark(0))
FLIGHT = 1 << 48


def batch(*positions: int) -> StreamBatch:
    size = len(positions)
    return StreamBatch("0", list(positions), [0.0] * size, [""] * size, [()] * size, [b"%d" % n for n in positions])


def read(*positions: int, part: Partition = PART) -> Items:
    size = len(positions)
    kind, ids = Kind("f"), [f"s/0/{position}" for position in positions]
    mapped = Mapped([kind] * size, [Cell("f", 0)] * size, ids, [1] * size, [()] * size)
    return Items(part, batch(*positions), mapped)


class Told:
    """An inheritance that notes its news."""

    def __init__(self, *positions: int, fence: int = 7) -> None:
        self.settled: list[tuple[int, bytes, int, int]] = []
        self.again: list[tuple[int, float]] = []
        self.behind: set[int] = set()  # positions that wait for others of their key
        self.cancelled: list[int] = []
        self.stops: list[tuple[int, float]] = []
        self.is_shut = False
        self.inherited = Inherited(self._settle, self._again, self)
        self.inherited.cancel = self.cancelled.extend
        self.inherited.accept([Inheritance(FLIGHT, fence, "0", dict(enumerate(positions)))])

    def _settle(self, record: InheritedItem, ended: Ended) -> None:
        item = record.items
        assert item.partition is PART
        self.settled.append((item.position(0), item.batch.payloads[0], record.fence, ended.outcome))

    def _again(self, record: InheritedItem, not_before: float) -> None:
        self.again.append((record.items.position(0), not_before))

    def shut(self, part: Partition, *, shut: bool) -> None:
        self.is_shut = shut

    def runs(self, item: Items) -> bool:
        return item.position(0) not in self.behind

    def stopped(self, part: Partition, position: int, not_before: float) -> None:
        self.stops.append((position, not_before))


def test_what_was_adopted_is_not_pushed() -> None:
    told = Told(3, 5)
    assert told.inherited.took(read(2, 3, 4, 5)).batch.positions == [2, 4]
    assert flights_of(OWN, told.inherited.running) == [FLIGHT]


def test_what_runs_elsewhere_is_handed_out_again_after_its_lease_and_is_in_no_renewal() -> None:
    told = Told()
    told.inherited.accept([Inheritance(FLIGHT, 7, "0", {0: 3})], {("0", 3): 40.0, ("0", 5): 50.0})
    assert told.inherited.took(read(2, 3, 4, 5)).batch.positions == [2, 4]
    assert told.again == [(5, 50.0)], "what a session adopted as well goes on"
    assert flights_of(OWN, told.inherited.running) == [FLIGHT]


def test_what_runs_at_two_schedulers_under_one_number_ends_each_by_its_own() -> None:
    # Given an item adopted in the tailer's own session, and one that runs elsewhere until 50
    told = Told()
    told.inherited.accept([Inheritance(FLIGHT, 7, "0", {0: 3})], {("0", 5): 50.0, ("0", 6): 50.0})
    # When a side adopts that as well, under the same number there, but for what is behind it
    told.inherited.add([Inheritance(flight_here(1, FLIGHT), 6, "0", {0: 5})])
    assert told.inherited.took(read(3, 4, 5, 6)).batch.positions == [4]
    assert told.again == [(6, 50.0)]
    # Then an outcome in one session settles what runs there
    told.inherited.came(Outcomes([ref_here(1, ref(FLIGHT, 0))]))
    assert told.settled == [(5, b"5", 6, Outcome.SUCCESS)]
    assert flights_of(OWN, told.inherited.running) == [FLIGHT] and not flights_of(1, told.inherited.running)


def test_a_lost_side_loses_its_own_and_nothing_else() -> None:
    told = Told(3, 7)
    told.inherited.add([Inheritance(flight_here(2, FLIGHT), 6, "0", {0: 5, 1: 8})])
    told.inherited.took(read(3, 5))
    told.inherited.lost(42.0, 2)
    assert told.again == [(5, 42.0)] and told.inherited.running == {ref(FLIGHT, 0), ref(FLIGHT, 1)}
    assert told.inherited.took(read(7, 8, 9)).batch.positions == [9]
    assert told.again == [(5, 42.0), (8, 42.0)]
    told.inherited.came(Outcomes([ref(FLIGHT, 0), ref(FLIGHT, 1)]))
    assert [position for position, *_ in told.settled] == [3, 7]


def test_an_outcome_settles_it_with_its_record_and_the_fence_it_ran_under() -> None:
    told = Told(3)
    told.inherited.took(read(3))
    told.inherited.came(Outcomes([ref(FLIGHT, 0)]))
    assert told.settled == [(3, b"3", 7, Outcome.SUCCESS)]
    assert not told.inherited.running


def test_what_lay_beyond_the_end_of_a_stream_that_went_back_is_waited_for_no_more() -> None:
    # Given two items that ended before they were read, and one that runs
    told = Told(3, 4, 5)
    told.inherited.came(Outcomes([ref(FLIGHT, 0), ref(FLIGHT, 1)]))
    # When the stream ends before all but the first of them, as it did not when they were handed out
    told.inherited.ends_at({"0": 4})
    # Then the first one's record is waited for, and what runs is
    assert told.inherited.runs(("0", 3)) and not told.inherited.runs(("0", 4)) and told.inherited.runs(("0", 5))
    # And once nothing runs and that one was read, nothing is
    told.inherited.came(Outcomes([ref(FLIGHT, 2)]))
    told.inherited.took(read(3))
    told.inherited.ends_at({"0": 4})
    assert [position for position, *_ in told.settled] == [3] and not told.inherited.pending


def test_an_outcome_that_comes_before_the_record_waits_for_it() -> None:
    told = Told(3)
    told.inherited.came(Outcomes([], {ref(FLIGHT, 0): Ended(Outcome.RETRY)}))
    assert not told.settled
    assert told.inherited.took(read(3)).batch.positions == []
    assert told.settled == [(3, b"3", 7, Outcome.RETRY)]


def test_an_end_that_the_former_owner_wrote_down_is_not_counted_again() -> None:
    # Given five adopted items, of which the former owner had heard how three ended; their rows say so
    part = Partition("0", Mark(0))
    part.rows = {
        3: LedgerEntry(3, LedgerPlace.SUSPECT, attempts=1, fence=7),  # failed, and is tried again from here
        4: LedgerEntry(4, LedgerPlace.SUSPECT, attempts=1, fence=6),  # by an attempt before the one that was adopted
        5: LedgerEntry(5, LedgerPlace.PARKING, n=1, attempts=1, fence=7),
        6: LedgerEntry(6, LedgerPlace.PARKING, n=1, due=NOT_YET, fence=7),  # detached: it runs
        7: LedgerEntry(7, LedgerPlace.RUNNING, n=1, attempts=1, fence=8),  # its copy was started meanwhile
    }
    told = Told(3, 4, 5, 6, 7)
    # When all of these ends are told again, before or after they are read
    told.inherited.came(Outcomes([], {ref(FLIGHT, 0): Ended(Outcome.RETRY)}))
    items = told.inherited.took(read(3, 4, 5, 6, 7, part=part))
    told.inherited.came(Outcomes([], {ref(FLIGHT, 2): Ended(Outcome.RETRY)}))
    # Then those three go on as their rows say, and the others are waited for
    assert items.batch.positions == [3, 5, 7] and not told.settled
    assert told.inherited.running == {ref(FLIGHT, 1), ref(FLIGHT, 3)}


def test_a_lost_session_hands_out_again_after_the_wait_read_or_not() -> None:
    told = Told(3, 5)
    told.inherited.took(read(3))
    told.inherited.lost(42.0)
    assert told.again == [(3, 42.0)]
    assert told.inherited.took(read(4, 5)).batch.positions == [4]
    assert told.again == [(3, 42.0), (5, 42.0)] and not told.inherited.running


def test_nothing_in_order_is_handed_out_before_all_that_runs_was_read_or_cannot_come() -> None:
    told = Told(3, 5, 7)
    told.inherited.took(read(2))
    assert told.is_shut
    part = Partition("0", Mark(0))
    for position in (3, 5):
        told.inherited.took(read(position, part=part))
    told.inherited.passed(part)
    assert told.is_shut
    part.read(batch(8), Fate.ABSENT)  # 7 is gone
    told.inherited.passed(part)
    assert not told.is_shut
    assert told.inherited.running == {ref(FLIGHT, 0), ref(FLIGHT, 1)}


def test_what_runs_behind_another_is_stopped_and_its_outcome_counts_for_nothing() -> None:
    told = Told(3)
    told.behind = {3}
    told.inherited.took(read(3))
    assert told.cancelled == [ref(FLIGHT, 0)] and told.stops == []
    told.inherited.came(Outcomes([ref(FLIGHT, 0)]))
    assert (told.stops, told.settled, told.inherited.pending) == ([(3, 0.0)], [], False)


def test_what_ran_behind_another_and_ended_or_was_lost_before_it_was_read_runs_again() -> None:
    told = Told(3, 5)
    told.behind = {3, 5}
    told.inherited.came(Outcomes([ref(FLIGHT, 0)]))
    told.inherited.took(read(3))
    told.inherited.lost(42.0)
    told.inherited.took(read(5))
    assert (told.stops, told.settled, told.again) == ([(3, 0.0), (5, 42.0)], [], [])


def test_where_nothing_more_can_be_read_what_was_not_read_runs_again_once_it_has_ended() -> None:
    told = Told(3, 5)
    told.inherited.took(read(2))
    told.inherited.came(Outcomes([ref(FLIGHT, 0)]))
    told.inherited.give_up(1.0)
    assert told.is_shut, "5 runs"
    told.inherited.came(Outcomes([ref(FLIGHT, 1)]))
    told.inherited.give_up(1.0)
    assert not told.is_shut and not told.inherited.pending
    assert told.inherited.took(read(3, 5)).batch.positions == [3, 5]


def test_a_second_answer_replaces_the_first() -> None:
    told = Told(3)
    told.inherited.accept([])
    assert told.inherited.took(read(3)).batch.positions == [3]


@given(
    adopted=st.sets(st.integers(0, 9)),
    events=st.permutations([("read", n) for n in range(10)] + [("end", n) for n in range(10)]),
)
def test_in_any_order_each_adopted_item_settles_once_and_every_other_is_pushed_once(
    adopted: set[int], events: list[tuple[str, int]]
) -> None:
    told = Told(*sorted(adopted))
    number = {position: ref(FLIGHT, index) for index, position in enumerate(sorted(adopted))}
    pushed = []
    for what, position in events:
        if what == "read":
            pushed += told.inherited.took(read(position)).batch.positions
        elif position in adopted:
            told.inherited.came(Outcomes([number[position], number[position]]))
    assert sorted(pushed) == sorted(set(range(10)) - adopted)
    assert sorted(position for position, *_ in told.settled) == sorted(adopted)
