"""The core of a stream tailer: events go in, decisions come out. No loop, no clock, no store."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, cast

import pytest

import tailrace.tailers
from tailrace.model.demand import Cell
from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.priority import DEFAULT_PRIORITY
from tailrace.model.retry import DEFAULT_RETRY
from tailrace.model.workload import Ended, Headers
from tailrace.sdk.source import Capabilities, StreamBatch
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.counts import TailerCounts
from tailrace.tailers.hand_out import HandOut
from tailrace.tailers.resources import Setup
from tailrace.tailers.rules.departure_steps import Step, Way
from tailrace.tailers.rules.settlement import Family, History, Settlement, settle
from tailrace.tailers.stream_core import StreamCore
from tailrace.tailers.stream_policy import StreamPolicy

CELL = Cell("resize", int(DEFAULT_PRIORITY))


class Kind:
    name, family = "folder", "stream"


class World:
    """A core, and a shell that only notes its decisions."""

    def __init__(self, *, rereads: bool = True, credit: int = 10, **config: Any) -> None:
        named = {"name": "t", "function": "resize", "source": {"kind": "log", "stream": "orders"}, **config}
        setup = cast(Setup, type("S", (), {"config": TailerConfig.model_validate(named), "kind": Kind, "origin": None}))
        self.counts, self.flights = TailerCounts(), cast(dict[int, HandOut], {})
        capabilities = Capabilities(rereads=rereads)
        told = (self._settlement, lambda *_: None, lambda *_: None)
        window = setup.config.window.rule()
        self.core = StreamCore(setup, self.counts, capabilities, window, self.flights, *told, policy=StreamPolicy())
        self.part = self.core.partition("0", Mark(0))
        self.core.given(self.part)
        self.core.seen.idle, self.core.seen.active = False, True
        self.grant(credit)

    @staticmethod
    def _settlement(function: str, ended: Ended, family: Family, history: History, origin: str) -> Settlement:
        return settle(ended, family, DEFAULT_RETRY, history, random.Random(1).random)

    def grant(self, items: int) -> None:
        self.core.seen.credit.limit([(CELL, items)], items)

    def read(self, *positions: int, payload: bytes = b"{}", key: str = "", headers: Headers = ()) -> None:
        size = len(positions)
        batch = StreamBatch("0", list(positions), [0.0] * size, [key] * size, [headers] * size, [payload] * size)
        self.core.read(self.part, batch)

    def pushed(self) -> list[HandOut]:
        """Hands out the items that the core decided to push."""
        pushes, self.core.decided.pushes = self.core.decided.pushes, []
        outs = []
        for items, counts, _ in pushes:
            number = len(self.flights) + 1
            flight = items.flight(number, number, cast(Any, None), wants_result=False)
            self.flights[number] = HandOut(flight, items.mapped.cells, counts, self.core.seen.wall, items)
            outs.append(self.flights[number])
        return outs

    def positions(self) -> list[list[int]]:
        return [out.place.batch.positions for out in self.pushed()]


def test_what_has_credit_is_pushed_and_the_rest_is_held_until_it_has() -> None:
    world = World(credit=2)
    world.read(0, 1, 2, 3)
    assert world.positions() == [[0, 1]] and len(world.core.holding) == 2
    world.core.offer()
    assert world.positions() == [], "there is no credit"
    world.grant(4)
    world.core.offer()
    assert world.positions() == [[2, 3]] and not len(world.core.holding)


def test_nothing_is_pushed_by_one_that_is_idle_and_all_of_it_once_it_is_not() -> None:
    world = World()
    world.core.seen.idle, world.core.seen.active = True, False
    world.read(0, 1)
    world.core.offer()
    assert world.positions() == [] and not world.core.room.items
    world.core.seen.idle, world.core.seen.active = False, True
    world.core.offer()
    assert world.positions() == [[0, 1]]


def test_what_succeeded_lets_the_frontier_pass_and_nothing_is_written() -> None:
    world = World()
    world.read(0, 1, 2)
    (out,) = world.pushed()
    world.core.succeeded(out, [0, 2])
    world.part.advance()
    assert world.part.frontier.position == 1 and world.core.decided.departures == []
    world.core.succeeded(out, [1])
    world.part.advance()
    assert world.part.frontier.position == 3 and world.part.window.used_items == 0


def test_what_failed_departs_by_its_row_and_the_frontier_waits_until_it_has_arrived() -> None:
    # Given an item that failed beside one that did not
    world = World()
    world.read(0, 1)
    (out,) = world.pushed()
    world.core.ended(out, {0: Ended(Outcome.RETRY, "boom")})
    world.core.succeeded(out, [1])
    # Then it is to be parked, its row first
    ((parked, due_in),) = world.core.decided.departures
    assert (parked.leg.way, parked.leg.step, parked.key) == (Way.PARK, Step.ROW, ("0", 0))
    assert parked.leg.row is not None and parked.leg.row.place is LedgerPlace.PARKING and due_in
    world.part.advance()
    assert world.part.frontier.position == 0 and world.core.going == 1
    # When all of its steps are done
    parked.leg = parked.leg._replace(step=Step.DONE)
    world.core.departures.arrived([parked])
    # Then, and only then, the frontier passes it
    world.part.advance()
    assert world.part.frontier.position == 2 and world.core.going == 0 and world.counts.parked == 1
    assert world.core.decided.wake


def test_what_is_lost_with_its_session_is_offered_again_when_nothing_of_it_can_run() -> None:
    world = World()
    world.core.seen.monotonic = 100.0
    world.read(0, 1)
    world.pushed()
    world.core.session_lost(30.0, unsent=[])
    world.core.offer()
    assert world.positions() == [] and world.core.holding.wait() == 30.0 and not world.flights
    world.core.seen.monotonic, world.core.seen.credit = 130.0, type(world.core.seen.credit)()
    world.grant(10)
    world.core.offer()
    assert world.positions() == [[0, 1]]


def test_what_expired_while_it_may_still_run_is_over_only_when_it_can_run_no_more() -> None:
    # Given an item that started in time, with another one of its key behind it, and is lost with its session
    world = World(order="key", key={"record": True}, expires={"header": "expires"})
    world.core.seen.monotonic, world.core.seen.wall = 100.0, 1000.0
    world.read(0, 1, key="k", headers=(("expires", "1970-01-01T00:16:50Z"),))
    assert world.positions() == [[0]]
    world.core.seen.wall = 1020.0
    world.core.session_lost(30.0, unsent=[])
    # When its time is over, then it is not, and the other one stays behind it
    world.grant(10)
    world.core.offer()
    assert world.positions() == [] and world.part.frontier.unsettled == 2
    # When nothing of it can run any more, even without credit, then both are over
    world.core.seen.monotonic, world.core.seen.wall = 130.0, 1050.0
    world.core.offer()
    world.core.offer()
    assert world.positions() == [] and world.part.frontier.unsettled == 0


def test_what_is_not_in_memory_any_more_is_read_again_with_its_credit_taken() -> None:
    # Given a window of which held payloads may take half, and more that is held
    world = World(credit=0, window={"items": 4})
    world.read(0, 1, 2, 3)
    assert world.part.window.used_items == 2
    # When there is credit for all
    world.grant(4)
    world.core.offer()
    # Then those that are here are pushed, and the others are to be read again under credit that is theirs
    assert world.positions() == [[0, 1]] and world.core.seen.credit.out == 4
    assert world.core.holding.to_reread() == [(world.part, [2, 3])]
    again = StreamBatch("0", [2], [0.0], [""], [()], [b"{}"])
    world.core.reread(world.part, [2, 3], again)  # 3 is gone
    assert world.positions() == [[2]] and world.core.seen.credit.out == 3 and not world.core.holding.reading_again


def test_large_items_are_read_again_a_few_at_a_time() -> None:
    # Given items of 3 MiB that are held, and are not in memory
    world = World(credit=0, window={"items": 12, "bytes": "64MiB"})
    world.read(*range(12), payload=b"1" * (3 << 20))
    world.grant(12)
    world.core.offer()
    # When they are to be read again, then about 8 MiB at a time
    assert [positions for _, positions in world.core.holding.to_reread()] == [[6, 7], [8, 9], [10, 11]]


def test_large_items_are_read_again_while_there_is_memory_for_their_bytes() -> None:
    # Given items of 3 MiB that are held, of which the memory holds four, and two are there
    world = World(credit=0, window={"items": 100, "bytes": "12MiB"})
    world.read(*range(12), payload=b"1" * (3 << 20))
    world.grant(12)
    # When all have credit, then as many go as have room beside those that are there
    world.core.offer()
    outs = world.pushed()
    assert [out.place.batch.positions for out in outs] == [[0], [1]] and world.core.holding.to_reread() == []
    # And once these have ended, as many as fit are read again, and no more while they are
    for out in outs:
        world.core.succeeded(out, [0])
    world.core.offer()
    assert [positions for _, positions in world.core.holding.to_reread()] == [[2, 3], [4, 5]]
    world.core.offer()
    assert world.core.holding.to_reread() == [] and world.core.holding.reading_again == 4


def test_an_item_in_order_that_goes_on_failing_ages_until_it_is_over() -> None:
    # Given an item that later ones wait for, which failed
    world = World(order="partition")
    world.core.seen.monotonic, world.core.seen.wall = 100.0, 5000.0
    world.read(0, 1)
    ages = lambda: world.counts.ageing.ages(world.core.seen.wall)  # noqa: E731
    assert ages() == []

    def fails() -> None:
        (out,) = world.pushed()
        world.core.ended(out, {0: Ended(Outcome.RETRY, "boom", after=10.0)})
        ((counted, _),) = world.core.decided.departures
        world.core.decided.departures = []
        counted.leg = counted.leg._replace(step=Step.DONE)
        world.core.departures.arrived([counted])

    def passes(seconds: float) -> None:
        world.core.seen.monotonic += seconds
        world.core.seen.wall += seconds
        world.core.offer()

    # Then it waits from the time on at which it is due, and has spent an attempt
    fails()
    name, priority = CELL[:2]
    assert ages() == [(name, priority, 0.0, 1)]
    world.grant(0)
    passes(40.0)
    assert ages() == [(name, priority, pytest.approx(30.0), 1)]
    # When it is handed out it waits no longer, and when it fails again it has spent another
    world.grant(10)
    passes(1.0)
    assert ages() == [(name, priority, 0.0, 1)]
    fails()
    assert ages() == [(name, priority, 0.0, 2)]
    # And once it is done it is nowhere
    passes(11.0)
    (out,) = world.pushed()
    world.core.succeeded(out, [0])
    assert ages() == []


#: The files of the core, which neither await nor ask a clock.
CORE = (
    "stream_core",
    "copy_starts",
    "holding",
    "ordering",
    "reading",
    "items",
    "partition",
    "position_audit",
    "surroundings",
)
DEPARTING = ("departure", "departures", "detaching", "expiring", "settlements", "dead_letters")


TAKEN_OVER = ("takeover/inherited", "takeover/orphans")


@pytest.mark.parametrize("file", [*CORE, *[f"departures/{name}" for name in DEPARTING], *TAKEN_OVER])
def test_the_core_awaits_nothing_and_asks_no_clock(file: str) -> None:
    text = (Path(tailrace.tailers.__path__[0]) / f"{file}.py").read_text()
    assert not re.search(r"\bawait\b|\basync\b|^import (asyncio|time)\b|sdk\.clock", text, re.MULTILINE), file
