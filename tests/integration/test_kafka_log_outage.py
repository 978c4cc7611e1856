"""A log on Kafka while its broker is away: acknowledged records are there afterwards, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tailrace.bench.kafka_nodes import KafkaCluster
from tailrace.model.errors import NotConnected
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record


async def eventually(call, tries=20):
    for _ in range(tries - 1):
        try:
            return await call()
        except NotConnected:
            continue
    return await call()


def senders():
    return {thread for thread in threading.enumerate() if type(thread).__name__ == "Sender"}


@pytest.mark.parametrize("client", ["kafka-python", pytest.param("confluent", marks=pytest.mark.long(minutes=0.5))])
async def test_what_was_acknowledged_outlives_a_killed_broker(own_kafka: KafkaCluster, client: str) -> None:
    # Given a log with ten records
    (node,) = own_kafka.nodes
    before = senders()
    options = KafkaOptions(bootstrap_servers=node.plain, client=client, request_timeout=2)
    log = KafkaLog(options)
    assert await log.append("s", 0, [Record(b"%d" % n) for n in range(10)]) == 0
    # When its broker is killed, appends and looks fail within their bound, as to be tried again
    node.kill()
    with pytest.raises(NotConnected, match="not known whether"):
        await log.append("s", 0, [Record(b"unknown")])
    with pytest.raises(NotConnected):
        await log.bounds("s")
    # And nobody goes on sending what was called unknown
    async with asyncio.timeout(20):
        while senders() - before:
            await asyncio.sleep(0.05)
    # And when it is back, they go on by themselves
    node.start()
    node.wait()
    assert await eventually(lambda: log.append("s", 0, [Record(b"after")])) >= 10
    found = await eventually(lambda: log.read("s", 0, 0, 100, 1 << 20))
    assert found.payloads[:10] == [b"%d" % n for n in range(10)] and found.payloads[-1] == b"after"
    await log.close()


async def test_a_cluster_that_was_never_there_is_named_with_what_to_do() -> None:
    log = KafkaLog(KafkaOptions(bootstrap_servers="127.0.0.1:1", request_timeout=1))
    with pytest.raises(NotConnected, match=r"127\.0\.0\.1:1: .*bootstrap_servers"):
        await log.streams()
    await log.close()


@pytest.mark.long(minutes=1)
@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
async def test_what_was_acknowledged_outlives_the_leader_of_three(tmp_path: Path, client: str) -> None:
    # Given a log on three nodes
    with KafkaCluster(tmp_path / "kafka", nodes=3) as cluster:
        log = KafkaLog(KafkaOptions(bootstrap_servers=cluster.bootstrap, client=client, request_timeout=3))
        await eventually(lambda: log.create("s", 3))
        acknowledged: dict[int, list[bytes]] = {partition: [] for partition in range(3)}

        async def write(partition: int, number: int) -> None:
            payload = b"%d" % number
            await eventually(lambda: log.append("s", partition, [Record(payload)]))
            acknowledged[partition].append(payload)

        # When each of them is killed and started again, one after the other, while records are appended
        number = 0
        for node in cluster.nodes:
            for step in range(30):
                if step == 10:
                    node.kill()
                if step == 20:
                    node.start()
                    node.wait()
                number += 1
                await write(number % 3, number)
        # Then everything that was acknowledged is there, in its order (an unknown one perhaps twice)
        for partition, wanted in acknowledged.items():
            found: list[bytes] = []
            position = 0
            while page := await eventually(lambda at=position, n=partition: log.read("s", n, at, 1000, 1 << 20)):
                if not page.positions:
                    break
                found += page.payloads
                position = page.positions[-1] + 1
            assert list(dict.fromkeys(found)) == wanted
        await log.close()
