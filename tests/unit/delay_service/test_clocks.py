"""Two clocks that may differ by any amount: the one that dates records in a rung, and the mover's own. Even so nothing
leaves early by the mover's clock, nothing is later than its bound and their skew, and hops stay few."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Rung
from tailrace.delay_service.records import record_of, rung_stream, rung_wait
from tailrace.delay_service.rules.head import LONGEST_TOGETHER, behind
from tailrace.delay_service.rules.ladder import DEFAULT_RUNGS, Ladder
from tailrace.model.parked import Parked, due_stream, ticket_of
from tailrace.model.workload import Kind
from tailrace.stores.log.log import Log, Record, Records
from tailrace.testing.clock import ManualClock

LADDER = Ladder()
DUE = due_stream("f")
#: Moves of one moment, at most: more is a storm.
STORM = 500


class Dated(Log):
    """Streams in memory whose records are dated by `clock`. An old one does not say what that clock says."""

    batches = True

    def __init__(self, clock: ManualClock, says: bool = True) -> None:
        self.clock, self.says = clock, says
        self.streams_: dict[str, list[tuple[float, Record]]] = {}
        self.entries = 0  # into rungs

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        self.put(stream, records, self.clock.wall())
        return 0

    def put(self, stream: str, records: Sequence[Record], time: float) -> None:
        self.streams_.setdefault(stream, []).extend([(time, record) for record in records])
        self.entries += len(records) if rung_wait(stream) is not None else 0

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        found = self.streams_.get(stream, [])[position : position + limit]
        columns: Any = [list(column) for column in zip(*[(time, *record) for time, record in found], strict=True)]
        times, payloads, keys, headers = columns or ([], [], [], [])
        positions = list(range(position, position + len(found)))
        return Records(positions, times, keys, headers, payloads, self.clock.wall() if self.says else 0.0)


class World:
    """Rungs over such a log, and the items that left them: how late each was, by the mover's clock."""

    def __init__(self, ahead: float, says: bool = True, batch: int = 1024) -> None:
        self.here, self.there = ManualClock(), ManualClock(monotonic=3.0)
        self.there.jump(ahead)
        self.log, config = Dated(self.there, says), DelayConfig(batch_items=batch)
        self.rungs = [Rung(rung_stream(w), w, 0, self.log, config, LADDER, self.here) for w in DEFAULT_RUNGS]
        self.late: list[float] = []

    def park(self, delays: Sequence[float], ahead: float = 0.0) -> None:
        """Parks items by a service whose appends are dated by a clock that is `ahead` seconds ahead of the log's."""
        now = self.here.wall()
        for number, delay in enumerate(delays):
            due = now + delay
            rung = LADDER.next_rung(due, LADDER.latest(due, now), now)
            stream = DUE if rung is None else rung_stream(DEFAULT_RUNGS[rung])
            item = Parked("s", str(number), Kind("f"), b"", due, now)
            self.log.put(stream, [record_of(item, LADDER.latest(due, now))], self.there.wall() + ahead)

    async def run(self, steps: Sequence[tuple[float, str, float]] = ()) -> None:
        """Moves items until all have left, and sets clocks at so many seconds after the begin."""
        begin, left = self.here.monotonic(), sorted(steps)
        while True:
            sleep = await self._move()
            while left and self.here.monotonic() - begin >= left[0][0]:
                _, which, by = left.pop(0)
                (self.here if which == "here" else self.there).jump(by)
                sleep = 0.0
            if sleep is None:
                return
            if left:
                sleep = min(sleep, begin + left[0][0] - self.here.monotonic())
            for clock in (self.here, self.there):
                clock.advance(max(sleep, LONGEST_TOGETHER))

    async def _move(self) -> float | None:
        for _ in range(STORM):
            moved, sleeps = False, []
            for rung in self.rungs:
                position, sleep = await rung.move()
                moved, rung.position = moved or position > rung.position, position
                sleeps += [] if sleep is None else [sleep]
            if not moved:
                break
        else:
            raise AssertionError("items circle in the ladder")
        for _, record in self.log.streams_.get(DUE, [])[len(self.late) :]:
            ticket = ticket_of(record.headers)
            assert ticket is not None
            self.late.append(self.here.wall() - ticket.due)
        return min(sleeps, default=None)


def most(delay: float) -> int:
    """The most hops of any chain of at most so many seconds: per rung one less than make the next one."""
    return 4 + 5 + 1 + 4 + 5 + 11 + int(delay / DEFAULT_RUNGS[-1]) + 1


delays = st.lists(st.floats(0.01, 20_000), min_size=1, max_size=5)
skews = st.floats(-20, 20) | st.floats(-100_000, 100_000)
step = st.tuples(st.floats(0, 5000), st.sampled_from(["here", "there"]), skews)
#: A move that gathers comes later by so much.
GATHERS = 2 * LONGEST_TOGETHER


@settings(deadline=None, max_examples=40)
@given(delays, skews)
@example([7.0, 5.0, 1.0], -5.0)
@example([7.0, 5.0, 1.0], 5.0)
def test_clocks_that_differ_change_nothing(waits: list[float], ahead: float) -> None:
    # Given the same items in a ladder whose log is dated by the mover's clock, and in one whose log is not
    same, other = World(0.0), World(ahead)
    for world in (same, other):
        world.park(waits)
        asyncio.run(world.run())
    # Then they make the same hops, and leave at the same times
    assert other.log.entries == same.log.entries
    assert other.late == pytest.approx(same.late, abs=1e-5)
    assert min(other.late) >= 0


@settings(deadline=None, max_examples=40)
@given(delays, skews, skews)
@example([7.0, 5.0, 1.0], 0.0, -5.0)
def test_what_another_copy_parked_by_a_clock_of_its_own_makes_one_chain_more_at_most(
    waits: list[float], ahead: float, theirs: float
) -> None:
    world = World(ahead)
    world.park(waits, theirs)
    asyncio.run(world.run())
    assert len(world.late) == len(waits)
    assert min(world.late) >= 0
    assert world.log.entries <= sum(1 + most(delay) for delay in waits)
    # Behind it or not, nothing is later than its bound and as much as their clock is ahead
    assert max(world.late) <= max(map(LADDER.tolerance, waits)) + max(0.0, theirs) + GATHERS * most(max(waits))


@settings(deadline=None, max_examples=40)
@given(delays, skews, st.lists(step, max_size=6))
@example([7.0, 5.0, 1.0, 40.0], 5.0, [(2.0, "there", -2.0), (4.0, "there", -2.0)])
def test_clocks_that_are_set_meanwhile_cost_hops_by_the_step_and_nothing_early(
    waits: list[float], ahead: float, steps: list[tuple[float, str, float]]
) -> None:
    world = World(ahead)
    world.park(waits)
    asyncio.run(world.run(steps))
    assert len(world.late) == len(waits)
    assert min(world.late) >= 0
    back = sum(abs(by) for _, _, by in steps)
    assert world.log.entries <= sum((1 + len(steps)) * most(delay + back) for delay in waits)
    assert max(world.late) <= max(map(LADDER.tolerance, waits)) + back + GATHERS * most(max(waits) + back)


async def test_what_was_read_ahead_is_as_old_as_it_is_when_it_is_looked_at() -> None:
    # Given two items of a rung, the second read while the first was moved on
    world = World(5.0, batch=1)
    world.park([1.0])
    world.here.advance(1.0)
    world.there.advance(1.0)
    world.park([1.0])
    rung = world.rungs[0]
    rung.position, _ = await rung.move()
    assert rung.position == 1
    # When a second has passed until it is looked at, then it has waited for that second
    world.here.advance(1.0)
    world.there.advance(1.0)
    assert (await rung.move())[0] == 2


def test_a_log_that_does_not_say_is_taken_for_one_on_our_clock() -> None:
    assert behind(0.0, 1e9, 1_700_000_000.0) == 0.0
    assert behind(1_699_999_990.0, 4.0, 1_700_000_000.0) == 6.0
    world = World(0.0, says=False)
    world.park([7.0, 61.0])
    asyncio.run(world.run())
    assert world.log.entries == 3 + 2
