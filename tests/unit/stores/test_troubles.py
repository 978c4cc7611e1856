"""Troubles that parts tell a store server: as it is now, bounded, and for a while after the last word."""

from __future__ import annotations

import math

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.model.reopening import Trouble
from tailrace.stores.troubles import LONGEST_TEXT, MOST_TELLERS, MOST_TROUBLES, SILENCE, TroubleBoard
from tailrace.testing.clock import ManualClock


def trouble(part: str, what: str = "it failed", since: float = 5.0) -> Trouble:
    return Trouble(part, since, what, 1)


async def test_each_process_is_shown_as_it_told_last_beside_the_servers_own() -> None:
    own = [trouble("stores")]
    board = TroubleBoard(lambda: own, ManualClock())
    await board.tell("a:1", [trouble("delay service a:1"), trouble("tailers a:1")])
    await board.tell("b:2", [trouble("tailers b:2")])
    await board.tell("a:1", [trouble("tailers a:1")])
    assert [each.part for each in await board.all()] == ["stores", "tailers b:2", "tailers a:1"]
    await board.tell("b:2", [])
    own.clear()
    assert await board.all() == [trouble("tailers a:1")]


async def test_who_falls_silent_is_shown_for_a_while() -> None:
    clock = ManualClock()
    board = TroubleBoard(list, clock)
    await board.tell("a:1", [trouble("tailers a:1")])
    clock.advance(SILENCE - 1)
    assert len(await board.all()) == 1
    clock.advance(1)
    assert await board.all() == []


async def test_who_tells_much_takes_no_memory() -> None:
    clock = ManualClock()
    board = TroubleBoard(list, clock)
    for number in range(2 * MOST_TELLERS):
        wild = trouble("p" * 1_000_000, "x" * 1_000_000, math.nan)
        await board.tell(f"{number}" + "n" * 1_000_000, [wild] * 10 * MOST_TROUBLES)
    shown = await board.all()
    assert len(shown) == MOST_TELLERS * MOST_TROUBLES
    assert len(shown[0].what) == LONGEST_TEXT and shown[0].since == clock.wall()
    with pytest.raises(InvalidRequest, match="name of the process"):
        await board.tell("", [])
