"""Replays of every kind of source that can read again: all settled items run once more, from the source's start to the
live checkpoint, under the name of the replay; a kind that does not know times or places says so."""

from __future__ import annotations

import asyncio
import uuid

import pytest
import redis

from tailrace.gateway.replay_orders import ReplayOrders
from tailrace.model.errors import InvalidRequest
from tailrace.model.lease import LeaseSizes
from tailrace.model.replay import Bound, Only, ReplayOrder, ReplayState
from tailrace.model.seek import END, START
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.registry import kind_of
from tailrace.tailers.replay.plan import reader_of
from tailrace.tailers.replay.progress import ReplayProgress
from tailrace.tailers.supervisor import Tailers

COUNT = 12
EVERYTHING = ReplayOrder("t", Bound(edge=START), Bound(edge=END))


@pytest.fixture
async def run(environment, scheduler, parking, stores):
    """Makes a function that starts a tailer over a source, waits until it has settled everything, and returns its
    replays."""
    started = []

    async def one(**source):
        config = TailerConfig.model_validate({"name": "t", "source": source, "function": "f"})
        sizes = LeaseSizes.of_heartbeat(0.5)
        tailers = Tailers([config], environment, scheduler.address, parking, sizes, due=False, replays=stores.replays)
        started.append(tailers)
        scheduler.allow("f")
        scheduler.allow("f", priority=3)
        await tailers.start()
        async with asyncio.timeout(60):
            while tailers.overviews()[0].settled < COUNT:
                await asyncio.sleep(0.05)
        progress = ReplayProgress(stores.checkpoints, stores.ledger, stores.ownership)
        return ReplayOrders(stores.replays, progress, 4, tailers.replays.wake)

    yield one
    for tailers in started:
        await tailers.drain(5)
        await tailers.stop()


async def replayed(replays, scheduler, order=EVERYTHING, ready=lambda plan: plan.items == COUNT):
    """Runs a replay to its end. Returns it, and the payloads that ran. The live checkpoint is written behind all that
    was settled."""
    plan = await looked(replays, order)
    async with asyncio.timeout(30):
        while not ready(plan.replay):
            await asyncio.sleep(0.05)
            plan = await looked(replays, order)
    assert plan.replay.number == 0
    begun = await replays.order(order)
    async with asyncio.timeout(30):
        while (found := await replays.get(begun.replay.number)).replay.state is not ReplayState.DONE:
            await asyncio.sleep(0.05)
    prefix = f"{found.replay.name}/"
    ran = [
        payload
        for flight in scheduler.flights
        for id_, payload in zip(flight.ids, flight.payloads, strict=True)
        if id_.startswith(prefix)
    ]
    assert found.counts == {"succeeded": len(ran)}
    return found, ran


async def looked(replays, order):
    return await replays.order(order._replace(dry_run=True))


def live_payloads(scheduler):
    return sorted(payload for flight in scheduler.flights for payload in flight.payloads)


async def test_a_folder(run, scheduler, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.txt").write_bytes(b"%d" % number)
    replays = await run(kind="directory", path=str(folder), payload="content")
    with pytest.raises(InvalidRequest, match="no times that rise"):
        await looked(replays, EVERYTHING._replace(begin=Bound(time=1.0)))
    live = live_payloads(scheduler)
    _, ran = await replayed(replays, scheduler)
    assert sorted(ran) == live


async def test_objects_line_by_line_but_not_in_the_order_of_keys(run, scheduler, environment, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(b"".join(b"%s%d\n" % (name.encode(), number) for number in range(COUNT // 2)))
    source = {"kind": "objects", "url": f"file://{folder}", "format": "jsonl", "poll": 0.05}
    replays = await run(**source)
    live = live_payloads(scheduler)
    _, ran = await replayed(replays, scheduler)
    assert sorted(ran) == live
    keys = TailerConfig.model_validate({"name": "k", "source": source | {"mode": "lexicographic"}, "function": "f"})
    with pytest.raises(InvalidRequest, match="another name at the same url with `mode: inventory`"):
        reader_of(kind_of("objects"), keys, environment)


async def test_a_redis_stream_by_time_and_with_an_unknown_number(run, scheduler, redis_server):
    key = f"s:{uuid.uuid4()}"
    with redis.Redis.from_url(redis_server) as client:
        try:
            for number in range(COUNT):
                client.xadd(key, {"body": b"%d" % number}, id=f"{1000 * number + 1}-0")
            replays = await run(kind="redis_stream", url=redis_server, streams=[key], payload={"field": "body"})
            end = (1000 * (COUNT - 1) + 1 << 20) + 1
            found, ran = await replayed(
                replays, scheduler, ready=lambda plan: [one.end for one in plan.stretches] == [end]
            )
            assert found.replay.items == -1
            assert ran == [b"%d" % number for number in range(COUNT)]
            order = EVERYTHING._replace(begin=Bound(time=3.0), end=Bound(time=6.0))
            _, ran = await replayed(replays, scheduler, order, ready=lambda plan: plan.items == -1)
            assert ran == [b"3", b"4", b"5"]
            with pytest.raises(InvalidRequest, match="far apart"):
                await looked(replays, EVERYTHING._replace(only=Only.UNSEEN))
        finally:
            client.delete(key)


@pytest.mark.parametrize("client", ["kafka-python", pytest.param("confluent", marks=pytest.mark.long(minutes=0.3))])
async def test_a_topic_outside_of_its_group(run, scheduler, kafka, client):
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka), prefix="")
    try:
        await log.create(topic, 2)
        for number in range(COUNT):
            await log.append(topic, number % 2, [Record(b"%d" % number)])
        replays = await run(
            kind="kafka", bootstrap_servers=kafka, topic=topic, group=topic, session_timeout="6s", client=client
        )
        live = live_payloads(scheduler)
        found, ran = await replayed(replays, scheduler)
        assert sorted(ran) == live
        assert [stretch.partition for stretch in found.replay.stretches] == [f"{topic}-0", f"{topic}-1"]
        with pytest.raises(InvalidRequest, match="2 partitions"):
            await looked(replays, EVERYTHING._replace(begin=Bound(0)))
        plan = await looked(replays, EVERYTHING._replace(begin=Bound(time=4e9), end=Bound(edge=END)))
        assert plan.replay.items == 0
    finally:
        await log.close()
