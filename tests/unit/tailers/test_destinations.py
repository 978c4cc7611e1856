"""Destinations of items that leave a stream tailer: a step that failed is repeated alone, and one that is away holds up
no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.audit import Fate
from tailrace.model.backoff import Pauses
from tailrace.model.dead_letter import DeadLetter
from tailrace.model.errors import InvalidRequest, Overloaded, Unavailable
from tailrace.model.lease import LeaseSizes
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.departures import destinations
from tailrace.tailers.departures.departure import Departure
from tailrace.tailers.departures.destinations import Destinations
from tailrace.tailers.ledger.row_cache import RowCache
from tailrace.tailers.ledger.rows import RowChange, RowHome
from tailrace.tailers.partition import Partition
from tailrace.tailers.rules.departure_steps import Step, Way, begin

LATER = 4e9  # wall clock: not soon


class Stores:
    """Rows, letters and a delay service that note their calls. Each call raises the next of its `errors`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[int]]] = []
        self.errors: dict[str, list[Exception]] = {}
        self.letters: list[DeadLetter] = []
        self.may_bury = asyncio.Event()
        self.may_bury.set()
        self.room = 1_000_000  # of the delay service, for items that it does not hold already

    def _tell(self, what: str, positions: list[int]) -> None:
        self.told.append((what, positions))
        if self.errors.get(what):
            raise self.errors[what].pop(0)

    async def write(self, changes: Sequence[RowChange]) -> list[LedgerEntry | None]:
        for place in dict.fromkeys(change.after.place for change in changes):
            self._tell(place.label, [each.home.position for each in changes if each.after.place is place])
        return [change.after for change in changes]

    async def park(self, items: Sequence[Parked]) -> None:
        self._tell("append", [item.position for item in items])
        if (new := sum([item.n <= 1 for item in items])) > self.room:
            raise Overloaded(f"{self.room} items fit")
        self.room -= new

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        await self.may_bury.wait()
        self._tell("letter", [letter.position for letter in letters])
        self.letters += letters


class World:
    """Destinations of one tailer, which run."""

    def __init__(self) -> None:
        self.stores = stores = Stores()
        self.done: asyncio.Queue[Departure] = asyncio.Queue()
        environment = SimpleNamespace(dead_letters=stores, results=None, drops=None)
        config = SimpleNamespace(name="t", order="none")
        setup: Any = SimpleNamespace(
            config=config,
            environment=environment,
            row_cache=RowCache(),
            origin=lambda name: None,
            parking=stores,
            clock=SYSTEM_CLOCK,
            sizes=LeaseSizes(),
        )
        rows: Any = stores
        self.to = Destinations(setup, rows, lambda batch: [self.done.put_nowait(each) for each in batch] and None)
        self.part = Partition("0", Mark(0))

    def park(self, position: int, row: LedgerEntry | None = None) -> None:
        row = row or LedgerEntry(position, LedgerPlace.PARKING, 1, LATER)
        parked = Parked(
            "t", f"t/0/{position}", Kind("f"), b"{}", row.due, 1.0, 2, partition="0", position=position, n=1
        )
        self._add(position, begin(Way.PARK, None, row), parked)

    def bury(self, position: int) -> None:
        letter = DeadLetter("i", "t", Kind("f"), b"{}", "fatal", "x", 1, 0, 1.0, 2.0, partition="0", position=position)
        self._add(position, begin(Way.BURY), letter)

    def _add(self, position: int, leg: Any, load: Any) -> None:
        self.to.add(Departure(self.part, position, 2, Fate.DELAYED, leg, RowHome("t", "0", position), load))


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(destinations, "STORE", Pauses(0.001, 5.0))
    world = World()
    tasks = [asyncio.create_task(step) for step in world.to.steps()]
    async with asyncio.timeout(20):
        yield world
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_park_is_a_row_an_append_and_a_row(world: World) -> None:
    world.park(7)
    assert (await world.done.get()).leg.step is Step.DONE
    assert world.stores.told == [("parking", [7]), ("append", [7]), ("parked", [7])]
    assert not list(world.to)


async def test_a_step_that_failed_is_repeated_without_those_before_it(world: World) -> None:
    world.stores.errors = {"append": [Unavailable("away")] * 2, "parked": [Unavailable("away")]}
    world.park(7)
    await world.done.get()
    assert world.stores.told == [("parking", [7]), *[("append", [7])] * 3, *[("parked", [7])] * 2]
    assert not world.to.failing


async def _hangs() -> dict[int, str]:
    await asyncio.Event().wait()
    return {}


async def _raises() -> dict[int, str]:
    raise RuntimeError("a bug")


async def _tells() -> dict[int, str]:
    return {3: "line 4", 99: "of nobody"}


@pytest.mark.parametrize(("answer", "reason"), [(_hangs, "x"), (_raises, "x"), (_tells, "x (line 4)")])
async def test_a_source_says_once_where_an_item_lies_and_holds_up_no_letter_whatever_it_does(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: Any, reason: str
) -> None:
    # Given a source that says in words where its items lie, or fails, or never answers, and letters away at first
    asked: list[list[int]] = []

    async def places(partition: str, positions: list[int]) -> dict[int, str]:
        asked.append(positions)
        found: dict[int, str] = await answer()
        return found

    monkeypatch.setattr(destinations, "PLACES_WITHIN", 0.05)
    monkeypatch.setattr(world.to, "_placed", lambda tailer: SimpleNamespace(places=places))
    world.stores.errors = {"letter": [Unavailable("away")] * 3}
    # When one is written
    world.bury(3)
    await world.done.get()
    # Then it was asked once, however often the write was tried, and the letter is there
    assert (asked, [letter.reason for letter in world.stores.letters]) == ([[3]], [reason])


async def test_a_destination_that_is_away_holds_up_no_other(world: World) -> None:
    # Given letters that cannot be written
    world.stores.may_bury.clear()
    world.bury(3)
    # When another item is parked, and one that the delay service refuses for good
    world.stores.errors = {"append": [InvalidRequest("beyond the bound")] * 2}
    world.park(7)
    world.stores.errors["append"].append(Unavailable("once"))
    world.park(8)
    # Then the one that it takes arrives, while both others wait for their letters
    assert (await world.done.get()).position == 8
    assert sorted(each.position for each in world.to) == [3, 7]
    # And arrive when they are written, the refused one's row last
    world.stores.may_bury.set()
    ended = {(await world.done.get()).position for _ in range(2)}
    assert ended == {3, 7} and world.stores.told[-1] == ("dead", [7])
    assert any("cannot be parked: beyond the bound" in letter.reason for letter in world.stores.letters)


async def test_of_what_does_not_fit_at_once_goes_what_fits(world: World) -> None:
    # Given a delay service that has room for three items
    world.stores.room = 3
    # When five come at once
    for position in range(5):
        world.park(position)
    while not world.to.failing:
        await asyncio.sleep(0)
    # Then three are in, and the others when there is room again
    assert world.stores.room == 0
    world.stores.room = 2
    assert {(await world.done.get()).position for _ in range(5)} == set(range(5))
    assert world.stores.room == 0


async def test_guards_that_do_not_fit_hold_up_no_retry_of_what_is_there_already(world: World) -> None:
    # Given a full delay service, and a guard that waits for room
    world.stores.room = 0
    world._add(7, begin(Way.GUARD), Parked("t", "t/0/7", Kind("f"), b"", LATER, 1.0, partition="0", position=7, n=1))
    while not world.to.failing:
        await asyncio.sleep(0)
    # When a copy that came due failed, then it is parked again
    row = LedgerEntry(8, LedgerPlace.PARKING, 2, LATER)
    world._add(
        8,
        begin(Way.PARK, None, row),
        Parked("t", "t/0/8", Kind("f"), b"", LATER, 1.0, 3, partition="0", position=8, n=2),
    )
    assert (await world.done.get()).position == 8
    assert [each.position for each in world.to] == [7]


async def test_a_guard_that_is_refused_is_looked_at_sooner(world: World) -> None:
    guard = Parked("t", "t/0/7", Kind("f"), b"{}", LATER, 1.0, 1, partition="0", position=7, n=1)
    world.stores.errors = {"append": [InvalidRequest("beyond the bound")] * 2}
    world._add(7, begin(Way.GUARD), guard)
    gone = await world.done.get()
    assert gone.leg.way is Way.GUARD_SOONER and isinstance(gone.load, Parked) and gone.load.due < LATER


async def test_what_cannot_be_written_says_why(world: World) -> None:
    world.stores.errors = {"append": [Unavailable("the delay service is away")] * 10_000}
    world.park(7)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            while not world.to.failing:
                await asyncio.sleep(0)
    assert world.to.failing == "the delay service is away"
