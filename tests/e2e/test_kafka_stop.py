"""A platform that is stopped, not drained: all settled items are in the checkpoints, and the group knows them too,
although a member tells its group only once a second."""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.platform import Platform
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS, PARTITIONS = 50, 2


@pytest.mark.long(minutes=0.2)
async def test_the_group_knows_at_once_what_was_settled_in_the_last_second(kafka: str, tmp_path: Path) -> None:
    # Given a platform that has just settled what there is
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka), prefix="")
    await log.create(topic, PARTITIONS)
    (tmp_path / "orders.yaml").write_text(
        f"name: orders\nsource: {{kind: kafka, bootstrap_servers: {kafka}, topic: {topic}, group: {topic}}}\n"
        "function: work\n"
    )
    journal = tmp_path / "journal"
    journal.touch()
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "orders.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        worker={"executors": 1},
    )
    await platform.start()
    try:
        for number in range(ITEMS):
            await log.append(topic, number % PARTITIONS, [Record(b"{}")])
        async with asyncio.timeout(60):
            while len(judge(journal.read_text().splitlines()).ended) < ITEMS:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)  # outcomes are on their way; a group hears of them within a second
    finally:
        # When it is stopped
        await platform.stop()
        await log.close()
    # Then the group is at the end of both
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic})
    try:
        known = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], timeout=20)
        assert [each.offset for each in known] == [ITEMS // PARTITIONS] * PARTITIONS
    finally:
        consumer.close()
