"""A crash of a real PostgreSQL that waits for no commit (durability: relaxed): claims, and who has which stream, may be
lost with it, while what they gave out still runs."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from servers.queue_nodes import PostgresNodes

from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import StaleFence, Unavailable
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.postgres.server import PostgresOptions
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.state.postgres import postgres_state

ANY = Demand({Cell("mail", 2): 100}, frozenset(), 100)
LEASE = 36.0


async def test_after_a_crash_nothing_is_handed_out_for_the_lease_of_a_source(own_postgres, caplog) -> None:
    # Given items that are on the disk, and a claim of one that need not be there yet
    server = own_postgres()
    nodes = PostgresNodes(server.address, "tailrace")
    queue, other = await nodes.queue(durability="relaxed"), await nodes.queue(durability="relaxed")
    try:
        await queue.submit([NewItem(Kind("mail", 2), b""), NewItem(Kind("mail", 2), b"")])
        server.run("CHECKPOINT")
        first = await queue.lease(Demand({Cell("mail", 2): 1}, frozenset(), 1), LEASE, 0)
        assert first is not None
        # When it crashes and is back
        await crashed(server)
        # Then no node hands anything out, until whoever has something of a claim that was lost cannot hold it any more
        for node in (queue, other, await nodes.queue(durability="relaxed")):
            assert await lease(node) is None
        assert "the server crashed, and may have lost its last commits" in caplog.text
        nodes.clock.advance(39)
        assert await lease(other) is None
        nodes.clock.advance(2)
        leased = await lease(other)
        assert leased is not None and leased.fence > first.fence
        # And neither the next start nor a shutdown costs anything
        nodes.clock.advance(LEASE + 1)
        assert await (await nodes.queue(durability="relaxed")).lease(ANY, LEASE, 0) is not None
        nodes.clock.advance(LEASE + 1)
        await stopped(server)
        server.program.start()
        assert await lease(queue) is not None
    finally:
        await nodes.close()


async def test_a_durable_server_that_crashed_hands_out_at_once(own_postgres) -> None:
    server = own_postgres()
    nodes = PostgresNodes(server.address, "tailrace")
    queue = await nodes.queue(durability="durable")
    try:
        await queue.submit([NewItem(Kind("mail", 2), b"")])
        await crashed(server)
        assert await lease(queue) is not None
    finally:
        await nodes.close()


async def test_after_a_crash_no_owner_of_a_stream_goes_on_and_none_is_taken_yet(own_postgres) -> None:
    # Given the owner of a stream, whose row need not be on the disk yet
    server = own_postgres()
    options = PostgresOptions(url=server.address, connections=3, timeout=5)
    state = postgres_state(options, StoresConfig(durability="relaxed"), wait=3.0)
    await state.ground.open()
    try:
        owner = await state.ownership.take("s", "", "me", LEASE, 0)
        assert owner is not None
        # When it crashes and is back, then its owner is refused, and the stream is given to nobody
        await crashed(server)
        with pytest.raises(StaleFence):
            await persistent(lambda: state.ownership.renew("s", "", owner.epoch, ()))
        row = await state.ownership.read("s", "")
        seen = row.version if row is not None else 0
        with pytest.raises(Unavailable):
            await state.ownership.take("s", "", "another", LEASE, seen)
        # And the owner after the wait is above all that were given, also above one whose row was lost
        after = await persistent(lambda: state.ownership.take("s", "", "another", LEASE, seen))
        assert after is not None and after.epoch > owner.epoch
    finally:
        await state.ground.close()


async def lease(queue):
    """The answer of a claim, once connections lead to the server that is back."""
    return await persistent(lambda: queue.lease(ANY, LEASE, 0))


async def persistent(call):
    """The answer of a call, which is made again for as long as the server is away, or gives nothing yet."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.01)


async def crashed(server) -> None:
    """Kills the server without warning and starts it again, once its children are gone, too."""
    server.program.kill()
    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.to_thread(server.program.start)
            except RuntimeError as error:
                assert "pre-existing shared memory block" in str(error)


async def stopped(server) -> None:
    """Shuts the server down in good order, whoever is connected (a fast shutdown)."""
    os.kill(server.program.pid, signal.SIGINT)
    await asyncio.to_thread(server.program.stop)
