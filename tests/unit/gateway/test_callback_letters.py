"""Callbacks that nobody heard: their ends and their dead letters are told in the words of any other item's."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tailrace.foundation.duties import Duties
from tailrace.gateway.callback_config import CallbackConfig
from tailrace.gateway.callbacks import Callbacks
from tailrace.gateway.rules import callback
from tailrace.model.claim import Leased, Settle, State
from tailrace.model.dead_letter import DeadLetter
from tailrace.model.demand import Cell, Demand
from tailrace.model.priority import Priority
from tailrace.model.tries import Try
from tailrace.model.workload import Kind
from tailrace.stores.jobs.rules.callback import CALLBACK
from tailrace.testing.clock import ManualClock

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
BEFORE = Try(1.0, "retry", "answered 503")


class OneItem:
    """A queue that hands out one item, and dead letters; both note the calls they get."""

    def __init__(self, payload: bytes, attempt: int) -> None:
        self.leased: Leased | None = Leased(7, 30.0, [Kind(CALLBACK)], ["a"], [payload], [attempt])
        self.letters: list[DeadLetter] = []
        self.ends: list[Settle] = []
        self.demand = Demand({}, frozenset(), 0)
        self.settled = asyncio.Event()
        self.full = False  # there is no room for a letter

    async def lease(self, demand: Demand, *_: Any) -> Leased | None:
        self.demand = demand
        leased, self.leased = self.leased, None
        if leased is None:
            await asyncio.Event().wait()
        return leased

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        return dict.fromkeys(ids, (BEFORE,))

    async def settle(self, fence: int, done: Sequence[str], ends: Sequence[Settle]) -> None:
        self.ends += ends
        self.settled.set()

    async def add(self, letters: Sequence[DeadLetter]) -> list[str] | None:
        if self.full:
            return [letter.id for letter in letters]
        self.letters += letters
        return None


async def send(payload: bytes, attempt: int, *, full: bool = False) -> OneItem:
    stores = OneItem(payload, attempt)
    stores.full = full
    as_stores: Any = stores
    duties = Duties("gateway")
    config = CallbackConfig(secrets=(SECRET,), allow=("127.0.0.0/8",), timeout=2)  # type: ignore[arg-type]
    Callbacks(config, as_stores, as_stores, ManualClock(), duties).start()
    async with asyncio.timeout(10):
        await stores.settled.wait()
    await duties.end()
    return stores


@pytest.fixture
def nobody() -> Iterator[bytes]:
    """A callback to a port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield b'{"url": "http://127.0.0.1:%d/", "event": {"id": "x"}}' % taken.getsockname()[1]


async def test_one_that_is_tried_again_keeps_its_try_as_any_item_does(nobody: bytes) -> None:
    stores = await send(nobody, 1)
    (end,) = stores.ends
    assert (end.state, end.outcome) == (State.RETRIABLE_FAILURE, "retry")
    assert stores.letters == []


async def test_one_of_whatever_priority_is_sent(nobody: bytes) -> None:
    # An operator may have given it another one than they are made with, and priorities may be named anew
    stores = await send(nobody, 1)
    assert {*stores.demand.cells} == {Cell(CALLBACK, int(level)) for level in Priority}


async def test_the_letter_of_one_that_was_given_up_tells_of_all_its_tries(nobody: bytes) -> None:
    # Given the last attempt of a callback, when nobody hears that either
    stores = await send(nobody, len(callback.PAUSES) + 1)
    # Then its letter says that it would have been tried again, and how each attempt went
    (letter,), (end,) = stores.letters, stores.ends
    assert end.state is State.FATAL_FAILURE
    assert (letter.id, letter.outcome, letter.attempts) == ("a", "retry", len(callback.PAUSES) + 1)
    assert letter.tries[0] == BEFORE
    assert [each.outcome for each in letter.tries] == ["retry", "retry"]
    assert letter.tries[1].reason == letter.reason


async def test_the_letter_of_one_that_can_never_be_sent_says_that_it_is_fatal() -> None:
    stores = await send(b"no callback", 1)
    (letter,) = stores.letters
    assert (letter.outcome, letter.tries[-1].outcome) == ("fatal", "fatal")


@pytest.mark.parametrize("attempt", [1, 3])
async def test_one_whose_letter_finds_no_room_stays_in_the_queue_and_is_charged_nothing(attempt: int) -> None:
    stores = await send(b"no callback", attempt, full=True)
    (end,) = stores.ends
    assert (end.state, end.attempts) == (State.RETRIABLE_FAILURE if attempt > 1 else State.NEW, attempt - 1)
    assert end.delay > 60 and stores.letters == []
