"""The state on a real Redis: servers that moved, are full or not to be trusted; two nodes that take over from each
other."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tailrace.model.dead_letter import EVERY, DeadLetter
from tailrace.model.errors import ConfigError, NotConnected, StaleFence, StoreFull, Unavailable
from tailrace.model.gate import Gate
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.ownership.ownership import Owner
from tailrace.stores.state.redis import state_on
from tailrace.stores.state.redis_server import RedisStateOptions, StateServer
from tailrace.stores.state.state import StateStores
from tailrace.testing.clock import ManualClock

WAIT = 36.0
LETTER = DeadLetter("a", "t", Kind("f"), b"x", "fatal", "boom", 1, 0, 1.0, 2.0)


class Process:
    """One process that uses the state of a server, under a clock of its own."""

    def __init__(self, url: str, durability: str = "durable") -> None:
        self.clock = ManualClock()
        self.server = StateServer(
            RedisStateOptions(url=url),
            durability=durability,
            wait=WAIT,
            clock=self.clock,  # type: ignore[arg-type]
        )
        self.state: StateStores = state_on(self.server, StoresConfig(), self.clock)

    async def take(self, source: str = "s") -> Owner | None:
        row = await self.state.ownership.read(source, "0")
        return await self.state.ownership.take(source, "0", "me", WAIT, row.version if row else 0)

    async def own(self, source: str = "s") -> Owner:
        """Takes a source, with its checkpoint and its ledger."""
        owner = await self.take(source)
        assert owner is not None
        await self.state.checkpoints.open(f"{source}/0", owner.epoch)
        await self.state.ledger.open(source, "0", owner.epoch)
        return owner

    async def over(self) -> None:
        """Lets the wait be over."""
        self.clock.advance(WAIT + 1)
        await self.server.call("HSET", self.server.key("home"), "quiet", 0)


@pytest.fixture
async def process() -> AsyncIterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(url: str, durability: str = "durable") -> Process:
        made.append(Process(url, durability))
        return made[-1]

    yield make
    for each in made:
        await each.server.close()


async def answered(process: Process) -> None:
    """Waits until the server is back and connections from before are gone."""
    async with asyncio.timeout(20):
        while True:
            try:
                await process.server.call("PING")
                return
            except NotConnected:
                await asyncio.sleep(0.01)


async def is_refused_until_the_wait_is_over(process: Process, owner: Owner) -> None:
    """Asserts the law of a server that moved: nothing is taken, nobody goes on, and then all begins above what was."""
    state = process.state
    with pytest.raises(Unavailable, match="no stream is taken for 3"):
        await process.take("other")
    epoch = owner.epoch
    for write in (
        state.ownership.renew("s", "0", epoch, ()),
        state.checkpoints.commit("s/0", epoch, {"0": Mark(9)}),
        state.ledger.write("s", "0", [(None, LedgerEntry(9, LedgerPlace.PARKING, 1))], epoch),
    ):
        with pytest.raises(StaleFence):
            await write
    await state.checkpoints.commit("counts", 1, {"0": Mark(9)})
    await process.over()
    again = await process.own()
    assert again.epoch > epoch and again.version > owner.version


async def test_a_plain_restart_of_a_durable_server_waits_for_nothing(own_redis, process) -> None:
    server = own_redis()
    one = process(server.address)
    owner = await one.own()
    server.program.kill()
    with pytest.raises(NotConnected):
        await one.state.ownership.renew("s", "0", owner.epoch, ())
    server.program.start()
    # The same owner goes on, and others take what they may.
    assert (await one.state.ownership.renew("s", "0", owner.epoch, ())).epoch == owner.epoch
    assert await process(server.address).take("other") is not None
    # When nobody who knew the server before is there first, then nothing is taken; who has a stream goes on.
    server.program.kill()
    server.program.start()
    stranger = process(server.address)
    with pytest.raises(Unavailable, match="no stream is taken for 3"):
        await stranger.take("third")
    await answered(one)
    assert (await one.state.ownership.renew("s", "0", owner.epoch, ())).epoch == owner.epoch
    await stranger.over()
    assert await stranger.take("third") is not None


async def test_after_a_lost_second_an_older_copy_or_a_word_nothing_is_taken_and_nobody_goes_on(
    own_redis, process, tmp_path: Path
) -> None:
    # Given a server with an owner from before a copy, and counts that a source keeps without an owner
    server = own_redis("--appendfsync", "everysec")
    one = process(server.address, "relaxed")
    owner = await one.own()
    await one.state.checkpoints.open("counts", 1)
    version = await one.state.control.put_gate(Gate("f", "", "pause"))
    # When it may have lost its last second
    server.program.kill()
    server.program.start()
    await answered(one)
    await is_refused_until_the_wait_is_over(one, owner)
    # Then who knew of control hears of it under a version above, and the next process waits for nothing
    assert (await one.state.control.snapshot()).version > version
    assert await process(server.address, "relaxed").take("third") is not None
    # When somebody says that it was put back
    last = await one.own()
    await one.server.call("HSET", one.server.key("home"), "run", "")
    await is_refused_until_the_wait_is_over(one, last)


async def test_a_copy_that_is_older_than_what_a_process_saw_is_seen_on_a_durable_server(
    own_redis, process, tmp_path: Path
) -> None:
    server = own_redis()
    one = process(server.address)
    owner = await one.own()
    await one.state.checkpoints.open("counts", 1)
    server.program.kill()
    files = server._folder / "appendonlydir"
    shutil.copytree(files, tmp_path / "copy")
    server.program.start()
    await answered(one)
    owner = await one.state.ownership.renew("s", "0", owner.epoch, ("x",))
    server.program.kill()
    shutil.rmtree(files)
    shutil.copytree(tmp_path / "copy", files)
    server.program.start()
    await answered(one)
    await is_refused_until_the_wait_is_over(one, owner)
    # And likewise when all of it is gone
    owner = await one.own()
    await one.server.call("FLUSHALL")
    with pytest.raises(Unavailable, match="no stream is taken"):
        await one.take("other")


async def test_a_promoted_replica_hands_out_nothing_for_the_lease_of_a_source(own_redis, process) -> None:
    master = own_redis("--repl-diskless-sync-delay", "0")
    one = process(master.address)
    owner = await one.own()
    await one.state.checkpoints.open("counts", 1)
    replica = own_redis("--replicaof", "127.0.0.1", str(master.port))
    other = process(replica.address)
    with pytest.raises(NotConnected, match="is a replica"):
        await other.take()
    async with asyncio.timeout(20):
        while not await one.server.call("WAIT", 1, 100):
            pass
        while b"aof_rewrite_in_progress:0" not in await other.server._server.call("INFO", "persistence"):
            await asyncio.sleep(0.01)
    await other.server._server.call("REPLICAOF", "NO", "ONE")
    await is_refused_until_the_wait_is_over(other, owner)


async def test_a_full_server_takes_what_settles_and_refuses_what_grows(own_redis, process) -> None:
    # Given a server that holds something of everything
    server = own_redis()
    one = process(server.address)
    state = one.state
    owner = await one.own()
    parking = LedgerEntry(1, LedgerPlace.PARKING, 1)
    await state.ledger.write("s", "0", [(None, parking)], owner.epoch)
    await state.dead_letters.add([LETTER])
    await state.results.put({"a": b"1"})
    await one.server.call("CONFIG", "SET", "maxmemory", 1)
    # When it is full, then what grows is refused, whole
    for write in (
        state.results.put({"b": b"1"}),
        state.dead_letters.add([LETTER]),
        state.ledger.write("s", "0", [(None, LedgerEntry(2, LedgerPlace.PARKING, 1))], owner.epoch),
    ):
        with pytest.raises(StoreFull, match="raise maxmemory"):
            await write
    # And what ends, frees or holds goes on
    owner = await state.ownership.renew("s", "0", owner.epoch, ("x",))
    await state.checkpoints.commit("s/0", owner.epoch, {"0": Mark(2)})
    dead = parking._replace(place=LedgerPlace.DEAD)
    assert await state.ledger.write("s", "0", [(parking, dead)], owner.epoch) == [dead]
    assert await state.ledger.passed("s", "0", owner.epoch, 2) == 1
    await state.control.put_gate(Gate("f", "", "pause"))
    [letter] = await state.dead_letters.list(EVERY, 1)
    assert await state.dead_letters.remove([letter.number]) == 1
    assert await state.results.get("a") == b"1"
    # And with room it is as before
    await one.server.call("CONFIG", "SET", "maxmemory", 0)
    await state.results.put({"b": b"1"})
    # Scripts that the server forgot are sent again
    await one.server.call("SCRIPT", "FLUSH")
    assert await state.results.get("b") == b"1"


async def test_a_server_that_is_not_durable_is_refused_until_it_is(own_redis, process) -> None:
    server = own_redis("--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru")
    one = process(server.address)
    for words, name, value in (
        ("maxmemory-policy allkeys-lru", "maxmemory-policy", "noeviction"),
        ("appendfsync everysec", "appendfsync", "always"),
    ):
        with pytest.raises(ConfigError, match=words):
            await one.state.ground.open()
        with pytest.raises(NotConnected, match=words):  # a node that runs waits until it can be trusted
            await one.take()
        await one.server._server.call("CONFIG", "SET", name, value)
    assert await one.take() is not None


async def test_a_call_that_is_cancelled_ends_so_wherever_it_is(redis_server, process) -> None:
    one = process(redis_server)
    await one.server.look()
    for turns in range(30):
        call = asyncio.create_task(one.server.call("PING"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if call.cancel():
            await asyncio.wait([call])
            assert call.cancelled(), f"the cancellation after {turns} turns was lost"
