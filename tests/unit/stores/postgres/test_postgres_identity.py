"""The position of a server's log, which several new connections ask for at once, tells a server that was put back."""

from __future__ import annotations

import asyncio
import math
from typing import Any, cast

from psycopg import AsyncConnection

from tailrace.stores.queue.postgres.identity import PostgresIdentity
from tailrace.testing.clock import ManualClock

WAIT = 37.0


class Line:
    """A connection whose answer, the log's position, comes when the test says so."""

    def __init__(self, position: int) -> None:
        self._row = ("here", "1", position, "here")
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def execute(self, *_: Any) -> Line:
        self.asked.set()
        await self.answer.wait()
        return self

    async def fetchone(self) -> tuple[Any, ...]:
        return self._row


async def look(identity: PostgresIdentity, *lines: Line) -> None:
    """Asks on all lines, which then answer one behind the other."""
    looks = [asyncio.create_task(identity.look(cast(AsyncConnection[tuple[Any, ...]], line))) for line in lines]
    for line in lines:
        await line.asked.wait()
    for line, looking in zip(lines, looks, strict=True):
        line.answer.set()
        await looking


def identity() -> PostgresIdentity:
    return PostgresIdentity("tailrace", "a server", WAIT, ManualClock())


async def test_answers_that_come_out_of_order_are_no_server_that_was_put_back() -> None:
    # Given a server that is known
    known = identity()
    await look(known, Line(90))
    # When two connections ask at once, and what was given later is heard first
    await look(known, Line(101), Line(100))
    # Then it is the same server, and the later position is what counts
    assert known.quiet_until == -math.inf
    await look(known, Line(100))
    assert known.quiet_until > 0


async def test_a_server_that_was_put_back_is_seen_once_by_all_that_ask() -> None:
    known = identity()
    await look(known, Line(100))
    # When the server is put back, and two connections ask it at once
    await look(known, Line(5), Line(6))
    # Then nothing is handed out for the lease of a source; and it goes on from there
    until = known.quiet_until
    assert until > 0
    await look(known, Line(7))
    assert known.quiet_until == until
