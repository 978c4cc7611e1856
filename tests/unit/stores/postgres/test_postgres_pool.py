"""A pool of connections: which one a call gets, and when one more is dialled."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.postgres.pool import PAUSE, PostgresConnections
from tailrace.testing.clock import ManualClock


class Line:
    """A connection."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class Server:
    """A server whose connections come when a test says so."""

    def __init__(self, most: int = 3) -> None:
        self.clock = ManualClock()
        self.dials: list[asyncio.Future[Line]] = []
        self.pool: PostgresConnections[Line] = PostgresConnections(self._dial, most, self.clock)
        self.pool.open()

    async def _dial(self) -> Line:
        self.dials.append(asyncio.get_running_loop().create_future())
        return await self.dials[-1]

    def connects(self) -> None:
        """Lets the oldest dial that waits connect."""
        at, dial = next((at, dial) for at, dial in enumerate(self.dials) if not dial.done())
        dial.set_result(Line(at))

    async def turn(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)

    async def taken(self, count: int) -> list[Line]:
        """Takes so many lines for calls, each of them dialled."""
        calls = [asyncio.create_task(self.pool.take(f"call {number}")) for number in range(count)]
        await self.turn()
        for _ in range(count):
            self.connects()
        return list(await asyncio.gather(*calls))


async def test_who_waits_gets_what_comes_first_an_old_one_or_a_new_one() -> None:
    # Given one connection, with a call
    server = Server()
    [old] = await server.taken(1)
    # When another call comes, then one more is dialled
    waiting = asyncio.create_task(server.pool.take("another"))
    await server.turn()
    assert len(server.dials) == 2
    # And the old one, when it comes free before, is what it gets; the new one is there for the next
    server.pool.give_back(old)
    assert await waiting is old
    server.connects()
    await server.turn()
    assert (await server.pool.take("a third")).number == 1
    assert len(server.dials) == 2


async def test_a_statement_runs_where_it_ran_last_else_where_nothing_ran_for_longest() -> None:
    # Given three connections, idle, on each of which another statement ran last
    server = Server()
    lines = await server.taken(3)
    for line in lines:
        server.pool.give_back(line)
    # Then each finds its own, in any order
    for number in (2, 0, 1):
        line = await server.pool.take(f"call {number}")
        assert line is lines[number]
        server.pool.give_back(line)
    # And what never ran gets that which was used longest ago
    assert await server.pool.take("new") is lines[2]
    # And who finds its own taken gets another one
    assert await server.pool.take("call 2") is lines[0]


async def test_no_more_are_dialled_than_may_be_and_than_are_waited_for() -> None:
    # Given as many as there may be
    server = Server(most=2)
    one, other = await server.taken(2)
    # When more calls come, then they wait in their order
    calls = [asyncio.create_task(server.pool.take("more")) for _ in range(2)]
    await server.turn()
    assert len(server.dials) == 2
    server.pool.give_back(one)
    assert await calls[0] is one
    # And where one is of no use any more another one is dialled in its place
    server.pool.drop(other)
    await server.turn()
    assert other.closed
    assert len(server.dials) == 3
    server.connects()
    assert (await calls[1]).number == 2


async def test_what_keeps_from_dialling_is_told_where_nothing_is_open_and_else_waited_out() -> None:
    # Given a server that takes no connection, then both that wait are told
    server = Server()
    calls = [asyncio.create_task(server.pool.take("a")) for _ in range(2)]
    await server.turn()
    for dial in server.dials:
        dial.set_exception(NotConnected("too many connections"))
    for call in calls:
        with pytest.raises(NotConnected):
            await call
    # Given one that takes one connection alone
    server.clock.advance(PAUSE)
    [only] = await server.taken(1)
    waiting = asyncio.create_task(server.pool.take("b"))
    await server.turn()
    server.dials[-1].set_exception(NotConnected("too many connections"))
    await server.turn()
    # Then who waits gets it in turn, and it is a while until more are tried
    another = asyncio.create_task(server.pool.take("c"))
    await server.turn()
    assert not waiting.done()
    dialled = len(server.dials)
    server.pool.give_back(only)
    assert await waiting is only
    server.clock.advance(PAUSE)
    last = asyncio.create_task(server.pool.take("d"))
    await server.turn()
    assert len(server.dials) == dialled + 1
    server.connects()
    await server.turn()
    assert another.done()
    server.pool.give_back(only)
    assert await last is only


async def test_what_is_found_broken_is_not_used_and_a_call_that_is_given_up_keeps_nothing() -> None:
    # Given an idle connection that broke, then a new one is dialled
    server = Server(most=1)
    [line] = await server.taken(1)
    server.pool.give_back(line)
    line.closed = True
    call = asyncio.create_task(server.pool.take("call 0"))
    await server.turn()
    server.connects()
    new = await call
    assert new.number == 1
    # And one that came for a call that was given up in that moment is there for the next
    given_up = asyncio.create_task(server.pool.take("a"))
    await server.turn()
    server.pool.give_back(new)
    given_up.cancel()
    await server.turn()
    assert given_up.cancelled()
    assert await server.pool.take("b") is new


async def test_closing_ends_what_is_idle_and_what_is_on_its_way_and_later_what_was_in_use() -> None:
    server = Server()
    one, other = await server.taken(2)
    server.pool.give_back(one)
    call = asyncio.create_task(server.pool.take("call 1"))  # gets what is idle
    assert await call is one
    waiting = asyncio.create_task(server.pool.take("x"))
    await server.turn()
    waiting.cancel()  # its dial is under way
    server.pool.give_back(one)
    await server.pool.close()
    assert one.closed
    assert server.dials[-1].cancelled()
    server.pool.give_back(other)
    await server.turn()
    assert other.closed
    assert not server.pool.idle
