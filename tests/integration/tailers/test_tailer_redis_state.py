"""Two nodes with their state on one Redis: one takes a stream over from the other, with everything that it kept."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from pathlib import Path

import pytest
import redis

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.model.dead_letter import EVERY
from tailrace.model.gate import Gate
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.config import StoresConfig
from tailrace.stores.redis.options import RedisOptions
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer

SUCCESS, FATAL = Ended(Outcome.SUCCESS), Ended(Outcome.FATAL, "boom")
SIZES = LeaseSizes.of_heartbeat(0.3)


class Node:
    """The stores of a node with its own folder, and a tailer of the one stream."""

    def __init__(self, folder: Path, url: str, prefix: str, scheduler, parking) -> None:
        place = {"engine": "redis", "url": url, "prefix": prefix}
        self.stores = stores = EmbeddedStores(folder, StoresConfig(state=place, delay_log=place), sizes=SIZES)
        source = {"kind": "redis_stream", "url": url, "streams": [f"{prefix}-s"], "payload": {"field": "n"}}
        config = TailerConfig.model_validate({"name": "t", "source": source, "function": "f", "results": True})
        self.tailer = Tailer(config, Resources(tailers_environment(stores), scheduler.address, parking, SIZES))

    async def cut_off(self) -> None:
        """Cuts the tailer off from its state: it gives nothing back that it owns."""
        server = self.stores.state.ground.server  # type: ignore[attr-defined]
        nowhere = RedisOptions(url="redis://127.0.0.1:1/0")  # type: ignore[arg-type]
        server._server._make = lambda: (nowhere.client(), nowhere.client(waits=1.0))
        await server.close()


@pytest.fixture
async def nodes(redis_server, tmp_path, scheduler, parking):
    prefix = f"t-{uuid.uuid4()}"
    async with contextlib.AsyncExitStack() as stack:
        made = [Node(tmp_path / name, redis_server, prefix, scheduler, parking) for name in "ab"]
        for node in made:
            await stack.enter_async_context(node.stores)
            stack.push_async_callback(node.tailer.stop)
        yield prefix, *made
    with redis.Redis.from_url(redis_server) as client:
        client.delete(*client.scan_iter(f"*{prefix}*"))


async def test_a_node_that_dies_is_followed_by_the_other_which_tells_what_it_kept(
    nodes, redis_server, scheduler, eventually
) -> None:
    # Given two nodes of one stream, of which one owns it, and a dead letter, a result and a gate through that one
    prefix, first, second = nodes
    with redis.Redis.from_url(redis_server) as client:
        for number in range(8):
            client.xadd(f"{prefix}-s", {"n": number})
    scheduler.decide = lambda flight, index: {b"0": FATAL, b"3": None}.get(flight.payloads[index], SUCCESS)
    scheduler.allow("f")
    await first.tailer.start()
    await eventually(lambda: first.tailer.overview().settled == 6)
    await second.tailer.start()
    await eventually(lambda: "previous owner" in second.tailer.overview().detail)
    async with asyncio.timeout(20):
        while not (letters := await second.stores.dead_letters.list(EVERY, 9)):
            await asyncio.sleep(0.01)
    assert [letter.reason for letter in letters] == ["boom"]
    await first.stores.results.put({"id": b"1"})
    assert await second.stores.results.get("id") == b"1"
    waiting = asyncio.create_task(second.stores.control.wait(1, 20.0))
    await first.stores.control.put_gate(Gate("g", "", "pause", "ann"))
    snapshot = await asyncio.wait_for(waiting, 10)
    assert snapshot is not None and [gate.function for gate in snapshot.gates] == ["g"]
    before = await second.stores.ownership.read("t", "")
    assert before is not None
    # When that one reaches its state no more, with an item out
    scheduler.decide = lambda flight, index: SUCCESS
    await first.cut_off()
    newest = max(flight.fence for flight in scheduler.flights)
    # Then the other takes the stream over and runs that item, under a new epoch
    again = []

    def is_done() -> bool:
        again[:] = [flight for flight in scheduler.flights if flight.fence > newest]
        return (
            b"3" in [payload for flight in again for payload in flight.payloads] and second.tailer.overview().lag == 0
        )

    await eventually(is_done, 30)
    # And when it leaves, the row is empty, so that another one may go on at once
    await second.tailer.drain(10)
    await second.tailer.stop()
    row = await second.stores.ownership.read("t", "")
    assert row is not None and row.holder == "" and row.epoch > before.epoch
