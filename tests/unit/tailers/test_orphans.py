"""Items that a former owner had detached: their fates by rows and records. No loop, no store."""

from __future__ import annotations

from typing import Any, cast

from tailrace.model.ledger import NOT_YET, LedgerEntry, LedgerPlace
from tailrace.sdk.source import Capabilities, StreamBatch
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.counts import TailerCounts
from tailrace.tailers.ledger.rows import RowHome
from tailrace.tailers.resources import Setup
from tailrace.tailers.rules.departure_steps import Step, Way
from tailrace.tailers.rules.orphans import OrphanStep, found, written
from tailrace.tailers.rules.settlement import settle
from tailrace.tailers.session import Inheritance
from tailrace.tailers.stream_core import StreamCore
from tailrace.tailers.stream_policy import StreamPolicy
from tailrace.tailers.takeover.orphans import AT_ONCE, OrphanBatch, Orphans

NOW = 1000.0


def row(position: int, due: float = NOT_YET, place: LedgerPlace = LedgerPlace.PARKING) -> LedgerEntry:
    return LedgerEntry(position, place, 1, due, first_seen=NOW - 60)


def batch(*positions: int, refused: dict[int, str] | None = None) -> StreamBatch:
    size = len(positions)
    columns = ([0.0] * size, [""] * size, [()] * size, [b"{}"] * size)
    return StreamBatch("0", list(positions), *cast(Any, columns), refused=cast(Any, refused or {}))


class Kind:
    name, family = "folder", "stream"


class Successor:
    """A core that took a partition over, of which `passed` positions are below its frontier."""

    def __init__(self, passed: int, *rows: LedgerEntry) -> None:
        named = {"name": "t", "function": "resize", "source": {"kind": "log", "stream": "orders"}}
        setup = cast(Setup, type("S", (), {"config": TailerConfig.model_validate(named), "kind": Kind, "origin": None}))
        told = (settle, lambda *_: None, lambda *_: None)
        window = setup.config.window.rule()
        self.core = StreamCore(
            setup, TailerCounts(), Capabilities(), window, {}, *cast(Any, told), policy=StreamPolicy()
        )
        self.part = self.core.partition("0", Mark(passed))
        self.part.know(rows)
        self.core.given(self.part)
        self.core.seen.wall = NOW

    @property
    def orphans(self) -> Orphans:
        return self.core.orphans

    def adopt(self, *positions: int) -> None:
        self.core.inherited.add([Inheritance(1, 77, "0", dict(enumerate(positions)))])

    def take(self, step: OrphanStep) -> OrphanBatch:
        some = self.orphans.take(step)
        assert some is not None and self.orphans.take(step) is None
        return some

    def departing(self) -> list[tuple[Way, Step, int]]:
        departures, self.core.decided.departures = self.core.decided.departures, []
        return [(each.leg.way, each.leg.step, each.position) for each, _ in departures]


def test_the_first_step_of_an_orphan_is_by_what_runs_and_by_what_was_passed() -> None:
    def first(until: float | None, *, passed: bool, adopted: bool) -> OrphanStep:
        return found(row(7), passed=passed, adopted=adopted, until=until).step

    for passed in (False, True):
        assert first(50.0, passed=passed, adopted=True) is OrphanStep.WAIT, "nobody hears of its end"
        assert first(None, passed=passed, adopted=False) is OrphanStep.RELEASE
    assert first(None, passed=True, adopted=True) is OrphanStep.RECORD
    assert first(None, passed=False, adopted=True) is OrphanStep.CARED


def test_only_what_was_passed_and_whose_row_was_released_is_copied() -> None:
    freed = row(7, due=NOW)
    passed, unpassed = (found(row(7), passed=each, adopted=False, until=None) for each in (True, False))
    assert written(passed, freed, freed) == (freed, OrphanStep.COPY, True, 0.0)
    assert written(unpassed, freed, freed).step is OrphanStep.CARED
    for stands in (None, row(7, place=LedgerPlace.DONE)):
        assert written(passed, freed, stands).step is OrphanStep.CARED, "somebody else wrote it"


def test_what_does_not_run_is_released_and_then_runs_as_a_copy_of_what_the_source_has() -> None:
    # Given a successor to whom two rows of what was detached are known, one of them of what the frontier has not passed
    world = Successor(2, row(4))
    assert world.orphans.unknown(world.part) == []
    world.orphans.found(world.part, ())
    world.orphans.released(released := world.take(OrphanStep.RELEASE), [each.after for each in released.changes])
    assert [each.after.due for each in released.changes] == [NOW]
    assert world.orphans.take(OrphanStep.COPY) is None, "its record is read with all others"
    # When rows of what was passed are found, of which one is written by somebody else meanwhile
    below = world.orphans.take_below()
    assert below == (world.part, 2, frozenset({4}))
    world.orphans.passed(world.part, [row(0), row(1), row(4)], frozenset({4}))
    some = world.take(OrphanStep.RELEASE)
    assert [each.home for each in some.changes] == [RowHome("t", "0", 0), RowHome("t", "0", 1)]
    world.orphans.released(some, [some.changes[0].after, row(1, place=LedgerPlace.DONE)])
    # Then the other is appended from its record, as its row says
    copies = world.take(OrphanStep.COPY)
    world.orphans.copied(copies, batch(0))
    assert world.departing() == [(Way.PARK, Step.APPEND, 0)] and world.part.detached.keys() == {0}


def test_a_record_that_is_gone_or_cannot_be_read_is_left_to_its_guard() -> None:
    world = Successor(3)
    world.orphans.found(world.part, ())
    world.orphans.passed(world.part, [row(0), row(1)], frozenset())
    some = world.take(OrphanStep.RELEASE)
    world.orphans.released(some, [each.after for each in some.changes])
    world.orphans.copied(world.take(OrphanStep.COPY), batch(1, refused={0: "checksum"}))
    assert world.departing() == [] and not world.part.detached and world.part.window.used_items == 0


def test_what_was_adopted_and_passed_gets_its_record_or_else_its_guard_stands_in() -> None:
    # Given two adopted items that were passed, whose rows are not known yet, and one that is read with all others
    world = Successor(2)
    world.adopt(0, 1, 5)
    assert {home.position for home in world.orphans.unknown(world.part)} == {0, 1, 5}
    world.orphans.found(world.part, [row(0), row(1), row(5)])
    assert world.orphans.take(OrphanStep.RELEASE) is None
    # When the source has the record of one of them
    some = world.take(OrphanStep.RECORD)
    assert [each.row.position for each in some.orphans] == [0, 1]
    world.orphans.recorded(some, batch(1))
    # Then both wait for their outcomes, and the other one has nothing but its guard
    assert len(world.core.inherited) == 2 and world.part.detached.keys() == {0, 1}
    assert world.core.detaching.bare == {("0", 0)}


def test_what_runs_where_nobody_hears_of_its_end_is_freed_when_that_is_over() -> None:
    world = Successor(1)
    world.core.inherited.accept([], {("0", 0): 50.0})
    world.orphans.found(world.part, [row(0)])
    assert [world.orphans.take(step) for step in OrphanStep] == [None] * len(OrphanStep)
    world.core.seen.monotonic = 50.0
    assert world.core.detaching.tick() == []
    assert world.departing() == [(Way.FREE, Step.MARK, 0)]


def test_many_are_taken_some_at_a_time() -> None:
    world = Successor(2 * AT_ONCE)
    world.orphans.found(world.part, ())
    world.orphans.passed(world.part, [row(position) for position in range(AT_ONCE + 1)], frozenset())
    sizes = []
    while some := world.orphans.take(OrphanStep.RELEASE):
        sizes.append(len(some.changes))
    assert sizes == [AT_ONCE, 1]
