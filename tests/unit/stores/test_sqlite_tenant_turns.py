"""Turns of tenants in SQLite's memory, against a model of them, as items come, become due, are taken or are closed."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.stores.queue.sqlite.rows import BLOCKED
from tailrace.stores.queue.sqlite.tenant_turns import TenantTurns

LANE_OF = {kind: kind % 2 for kind in range(24)}
KINDS = st.sampled_from(sorted(LANE_OF))


class TenantTurnsModel(RuleBasedStateMachine):
    """The model. `waiting`: times of what waits of each kind; `served`: kinds that had a turn while a due one waits."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = TenantTurns(LANE_OF)
        self.now = 100
        self.waiting: defaultdict[int, list[int]] = defaultdict(list)
        self.served: dict[int, set[int]] = {}

    def due(self, kind: int) -> list[int]:
        return [trigger for trigger in self.waiting[kind] if trigger <= self.now]

    @rule(kinds=st.lists(KINDS, min_size=1, max_size=12), delay=st.integers(-5, 20))
    def submit(self, kinds: list[int], delay: int) -> None:
        for kind in kinds:
            self.waiting[kind].append(self.now + delay)
            self.turns.sooner(kind, self.now + delay)

    @rule(seconds=st.integers(-5, 15))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(kind=KINDS)
    def cancel(self, kind: int) -> None:
        if self.waiting[kind]:  # nobody tells the turns: a bound is at most the first
            self.waiting[kind].remove(min(self.waiting[kind]))

    @rule()
    def reload(self) -> None:
        firsts = [(kind, min(times)) for kind, times in self.waiting.items() if times]
        self.turns = TenantTurns(LANE_OF)
        for lane in {LANE_OF[kind] for kind, _ in firsts}:
            self.turns.enter(lane, [each for each in firsts if LANE_OF[each[0]] == lane])
        self.served.clear()

    @rule(lane=st.sampled_from([0, 1]), most=st.integers(1, 5), each=st.integers(1, 2), closed=st.frozensets(KINDS))
    def claim(self, lane: int, most: int, each: int, closed: frozenset[int]) -> None:
        self.turns.at_gates(closed)
        wants = {k for k in LANE_OF if LANE_OF[k] == lane and k not in closed and self.due(k)}
        if lane not in self.turns.lanes:
            assert not wants
            return
        bound = self.turns.look(lane, self.now, closed.__contains__)
        open_kinds = [k for k in LANE_OF if LANE_OF[k] == lane and k not in closed and self.waiting[k]]
        assert bound <= min((min(self.waiting[k]) for k in open_kinds), default=BLOCKED) or bound <= self.now
        if bound > self.now:
            assert not wants
            return
        taken = self.turns.take(lane, most, closed.__contains__)
        assert taken and not closed.intersection(taken) and len(set(taken)) == len(taken) <= most
        for kind in taken:
            assert LANE_OF[kind] == lane
            self._turn(kind, each, wants - {*taken})
        for kind in wants.union(self.served) if len(taken) < most else ():
            # Whoever is due had a turn where there was room for more.
            assert kind in taken or LANE_OF[kind] != lane or kind in closed or not self.due(kind)

    def _turn(self, kind: int, each: int, others: set[int]) -> None:
        had = bool(self.due(kind))
        for trigger in sorted(self.due(kind))[:each]:
            self.waiting[kind].remove(trigger)
        if left := self.due(kind):
            self.turns.left(kind, min(left))
        else:
            self.turns.waits(kind, min(self.waiting[kind], default=BLOCKED))
        self.served.pop(kind, None)
        for other in others if had else ():
            # No one has two turns while another open one waits for its first.
            seen = self.served.setdefault(other, set())
            assert kind not in seen, f"{kind} had two turns while {other} waited"
            seen.add(kind)

    @invariant()
    def nobody_is_lost(self) -> None:
        for kind, times in self.waiting.items():
            if times:
                turns = self.turns.lanes[LANE_OF[kind]]
                assert self.turns.bounds[kind] <= min(times)
                assert kind in turns.due or kind in turns.closed or (self.turns.bounds[kind], kind) in turns.queued
        for kind in list(self.served):
            if not self.due(kind):
                del self.served[kind]
        for turns in self.turns.lanes.values():
            assert not turns.due.keys() & turns.closed.keys()
            assert sorted(turns.queued) == sorted(turns.later)


TestTenantTurns = TenantTurnsModel.TestCase


def test_what_waits_for_the_same_moment_again_and_again_is_noted_once() -> None:
    # Given a kind that waits for a moment far away
    turns = TenantTurns(LANE_OF)
    turns.sooner(1, 1000)
    # When it has something at once, many times
    for now in range(100):
        turns.sooner(1, now)
        assert turns.look(1, now, lambda _: False) == now
        [kind] = turns.take(1, 16, lambda _: False)
        turns.waits(kind, 1000)
    # Then nothing grew
    assert turns.lanes[1].later == [(1000, 1)]
