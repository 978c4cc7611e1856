"""Room in a queue on PostgreSQL, by counts that come beside its submissions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tailrace.model.claim import State
from tailrace.model.errors import NotConnected, Overloaded
from tailrace.stores.queue.postgres.capacity import COUNTED, Capacity
from tailrace.testing.clock import ManualClock


class Counted:
    """A queue with so many live items, whose counts may have to be waited for."""

    def __init__(self, live: int) -> None:
        self.live, self.asked, self.away = live, 0, False
        self.clock = ManualClock()
        self.answers = asyncio.Event()
        self.answers.set()
        self.running: set[asyncio.Task[None]] = set()
        self.room = Capacity(10, self.counts, self.clock, self.run)

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self.running.add(task)
        return task

    async def counts(self) -> dict[str, int]:
        self.asked += 1
        await self.answers.wait()
        if self.away:
            raise NotConnected("the server is away")
        return {state.label: self.live if state is State.NEW else 0 for state in State}


async def test_while_there_is_room_nobody_waits_for_a_count() -> None:
    # Given a queue with room, counted some time ago, whose next count takes long
    queue = Counted(live=4)
    await queue.room.look(1)
    queue.clock.advance(2 * COUNTED)
    queue.answers.clear()

    # When somebody submits, and somebody else, then both go on at once, beside one count
    await asyncio.wait_for(queue.room.look(1), 1)
    await asyncio.wait_for(queue.room.look(1), 1)
    await asyncio.sleep(0)
    assert queue.asked == 2

    # And what the count found holds from then on, with what was taken meanwhile
    queue.room.taken(3)
    queue.live = 6
    queue.answers.set()
    await asyncio.gather(*queue.running)
    await queue.room.look(1)
    assert queue.asked == 2
    queue.live = 10
    with pytest.raises(Overloaded):
        await queue.room.look(2)
    assert queue.asked == 3


async def test_who_finds_no_room_has_it_counted_again_first() -> None:
    # Given a queue that was full
    queue = Counted(live=10)
    with pytest.raises(Overloaded):
        await queue.room.look(1)

    # When something ended, then the next submission is let in at once
    queue.live = 9
    await queue.room.look(1)


async def test_a_count_that_fails_is_nobodys_error() -> None:
    # Given a queue with room whose server goes away
    queue = Counted(live=1)
    await queue.room.look(1)
    queue.clock.advance(2 * COUNTED)
    queue.away = True

    # When somebody submits, then the submission itself is to tell
    await queue.room.look(1)
    await asyncio.gather(*queue.running)
