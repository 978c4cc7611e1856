"""The worker's half of the lease chain against a model that follows every item by itself."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.model.workload import INDEX_BITS
from tailrace.runtime.rules.leases import Leases

LEASE = 18.0


def test_a_lease_counts_from_when_its_request_was_sent() -> None:
    leases = Leases()
    leases.hello(1, 100.0)
    number = leases.request(1, 105.0)
    assert leases.assigned(1, 7, 5, number, LEASE, now=110.0) == 123.0
    assert leases.assigned(1, 8, 6, 0, LEASE, now=110.0) == 118.0
    assert leases.earliest([5 << INDEX_BITS, 6 << INDEX_BITS]) == 118.0


def test_what_is_over_unknown_or_of_another_session_is_refused() -> None:
    leases = Leases()
    leases.hello(1, 100.0)
    assert leases.assigned(1, 7, 5, 0, LEASE, now=118.0) is None
    assert leases.assigned(1, 7, 5, 3, LEASE, now=101.0) is None
    assert leases.assigned(2, 7, 5, 0, LEASE, now=101.0) is None
    leases.lost(1)
    assert leases.assigned(1, 7, 5, 0, LEASE, now=101.0) is None


def test_a_group_that_is_not_named_and_an_item_that_is_revoked_keep_their_deadline() -> None:
    leases = Leases()
    leases.hello(1, 100.0)
    leases.assigned(1, 7, 5, 0, LEASE, now=100.0)
    leases.assigned(1, 8, 6, 0, LEASE, now=100.0)
    number = leases.request(1, 105.0)
    revoked, kept, other = 5 << INDEX_BITS, (5 << INDEX_BITS) + 1, 6 << INDEX_BITS
    leases.granted(1, number, {7: LEASE}, [revoked])
    assert leases.earliest([revoked]) == 118.0
    assert leases.earliest([kept]) == 123.0
    assert leases.earliest([other]) == 118.0
    assert leases.ending(118.0) == ({6}, {revoked})


def test_a_lost_session_renews_nothing_but_its_deadlines_stand() -> None:
    leases = Leases()
    leases.hello(1, 100.0)
    leases.assigned(1, 7, 5, 0, LEASE, now=100.0)
    number = leases.request(1, 105.0)
    leases.lost(1)
    leases.granted(1, number, {7: LEASE}, [])
    assert leases.earliest([5 << INDEX_BITS]) == 118.0


def test_a_group_told_to_stop_is_told_once_and_never_renewed() -> None:
    leases = Leases()
    leases.hello(1, 100.0)
    leases.assigned(1, 7, 5, 0, LEASE, now=100.0)
    assert leases.ending(117.0) == (set(), set())
    assert leases.ending(118.0) == ({5}, set())
    assert leases.ending(118.0) == (set(), set())
    leases.granted(1, leases.request(1, 116.0), {7: LEASE}, [])
    assert leases.earliest([5 << INDEX_BITS]) == 118.0
    assert leases.assigned(1, 7, 6, 1, LEASE, now=117.0) == 134.0


class LeaseMachine(RuleBasedStateMachine):
    """The leases of a worker, at random. Invariant: no item is ever thought to be held longer than some grant or
    assignment that covers it allows."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = Leases()
        self.now = 100.0
        self.sent: dict[int, float] = {0: self.now}
        self.leases.hello(1, self.now)
        self.flight = 0
        self.allowed: dict[int, float] = {}  # flight → the latest deadline the scheduler ever allowed
        self.group: dict[int, int] = {}

    @rule(step=st.floats(0.0, 4.0))
    def time_passes(self, step: float) -> None:
        self.now += step

    @rule()
    def requests(self) -> None:
        self.sent[self.leases.request(1, self.now)] = self.now

    @rule(group=st.integers(1, 3), lease=st.floats(1.0, LEASE), back=st.integers(0, 2))
    def is_assigned(self, group: int, lease: float, back: int) -> None:
        number = max(0, max(self.sent) - back)
        self.flight += 1
        deadline = self.leases.assigned(1, group, self.flight, number, lease, self.now)
        if self.sent[number] + lease <= self.now:
            assert deadline is None
        else:
            self.allowed[self.flight] = self.sent[number] + lease
            self.group[self.flight] = group

    @precondition(lambda self: len(self.sent) > 1)
    @rule(groups=st.sets(st.integers(1, 3)), lease=st.floats(0.0, LEASE))
    def is_granted(self, groups: set[int], lease: float) -> None:
        number = max(self.sent)
        self.leases.granted(1, number, dict.fromkeys(groups, lease), [])
        for flight, group in self.group.items():
            if group in groups:
                self.allowed[flight] = max(self.allowed[flight], self.sent[number] + lease)

    @rule()
    def sweeps(self) -> None:
        self.leases.keep([flight << INDEX_BITS for flight in self.allowed])

    @rule()
    def looks(self) -> None:
        flights, _ = self.leases.ending(self.now + 1.0)
        for flight in flights:
            assert self.leases.earliest([flight << INDEX_BITS]) <= self.now + 1.0

    @invariant()
    def nothing_outlives_what_was_allowed(self) -> None:
        for flight, allowed in self.allowed.items():
            assert 0 < self.leases.earliest([flight << INDEX_BITS]) <= allowed


LeaseMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLeaseMachine = LeaseMachine.TestCase
