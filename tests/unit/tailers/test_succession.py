"""Succession: a taker's conclusions from the answers of the schedulers that a row names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.lease import LeaseSizes
from tailrace.stores.ownership.ownership import Owner
from tailrace.tailers.session import Adopted, Inheritance
from tailrace.tailers.takeover.inherited import Inherited
from tailrace.tailers.takeover.succession import Succession

ROW = Owner(7, 1, "somebody", 36.0, ("here",))
FLIGHT = 1 << 48


class Held:
    """An epoch whose row somebody else has, and a session with its scheduler."""

    row = ""
    adopted = False
    connected = True
    scheduler = "here"

    def __init__(self, *flights: Inheritance) -> None:
        self.flights = flights
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def take(self, adopt: Callable[[Owner], Awaitable[bool]]) -> dict[str, Any]:
        self.adopted = await adopt(ROW)
        return {}

    async def adopt(self, source: str, partition: str, epoch: int, version: int) -> Adopted:
        self.asked.set()
        await self.answers.wait()
        return Adopted("", self.flights)

    def left(self, scheduler: str, until: float) -> None: ...

    def joined(self, scheduler: str) -> None: ...


def succession(held: Held, wake: Callable[[], None] = lambda: None) -> Succession:
    inherited = Inherited(lambda record, ended: None, lambda record, not_before: None, held)  # type: ignore[arg-type]
    return Succession("t", held, held, inherited, LeaseSizes(), SYSTEM_CLOCK, wake)  # type: ignore[arg-type]


async def test_what_a_session_confirmed_that_was_lost_meanwhile_is_not_taken_for_adopted() -> None:
    for lost in (False, True):
        # Given a taker that waits for the answer of its scheduler
        held = Held(Inheritance(FLIGHT, 5, "0", {0: 3}))
        heir = succession(held)
        taking = asyncio.create_task(heir.take())
        await held.asked.wait()
        # When its session is lost before it has looked at that
        if lost:
            heir.lost(0.0, 28.0)
        held.answers.set()
        await taking
        # Then nothing was adopted: nobody would ever hear how it ends
        assert held.adopted is not lost
        assert heir.flights == ([] if lost else [FLIGHT])


async def test_of_two_hand_outs_of_a_position_the_newer_one_is_adopted() -> None:
    # Given a scheduler that knows of two sessions of the former owner, in which it handed out one item
    held = Held(Inheritance(FLIGHT + 1, 6, "0", {0: 3, 1: 4}), Inheritance(FLIGHT, 5, "0", {0: 3}))
    held.answers.set()
    heir = succession(held)
    # When it adopts
    await heir.take()
    # Then the older one is not renewed: how that ended counts for nothing
    assert heir.flights == [FLIGHT + 1] and len(heir.inherited.running) == 2


class Beaten(Held):
    """A taker whose row somebody else takes between the adoption and the compare-and-set, and keeps."""

    def __init__(self, *flights: Inheritance) -> None:
        super().__init__(*flights)
        self.refused = asyncio.Event()

    async def take(self, adopt: Callable[[Owner], Awaitable[bool]]) -> dict[str, Any]:
        assert await adopt(ROW)
        assert not await adopt(ROW._replace(version=8, epoch=2, holder="faster"))
        self.refused.set()
        return await asyncio.Future()

    async def adopt(self, source: str, partition: str, epoch: int, version: int) -> Adopted:
        return Adopted("", self.flights) if epoch == ROW.epoch else Adopted("its owner lives", ())


async def test_what_somebody_else_took_first_is_waited_for_by_nobody() -> None:
    # Given two that adopt what a dead owner had running
    beaten = Beaten(Inheritance(FLIGHT, 5, "0", {0: 3}))
    woken = asyncio.Event()
    heir = succession(beaten, woken.set)
    # When the other one takes the row first
    taking = asyncio.create_task(heir.take())
    await beaten.refused.wait()
    # Then nothing of it is this one's to renew or to wait for, and whoever drains it hears of that
    assert (heir.flights, heir.inherited.running) == ([], set())
    assert woken.is_set()
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
