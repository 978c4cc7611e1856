"""Commits of a group, read from where the coordinator of a real broker writes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata

from tailrace.bench.faults.kafka_commits import GroupCommits
from tailrace.bench.faults.known_too_soon import JournaledProgress


def committed(bootstrap: str, group: str, topic: str, offsets: Sequence[tuple[int, int]]) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    for partition, offset in offsets:
        consumer.commit({TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)})
    consumer.close()


async def heard(commits: GroupCommits, count: int) -> list[tuple[str, JournaledProgress]]:
    found: list[tuple[str, JournaledProgress]] = []
    async with asyncio.timeout(30), commits.asked() as ask:
        while len(found) < count:
            found.extend(await ask())
        found.extend(await ask())  # no more than these
    return found


async def test_each_commit_is_told_once_and_in_order_also_one_that_goes_back(kafka: str) -> None:
    # Given a topic, and a group that commits in it, also backwards, while others commit as well
    topic, group = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("seen", "group"))
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.create_topics([NewTopic(topic, 2, 1)])
    admin.close()
    commits = GroupCommits(kafka, group, topic, "file/{partition}")
    await asyncio.to_thread(committed, kafka, group, topic, [(0, 3), (1, 4), (0, 7), (0, 5)])
    await asyncio.to_thread(committed, kafka, f"{group}-other", topic, [(0, 9)])
    # When what it committed is asked for
    found = await heard(commits, 4)
    # Then each commit is there
    assert [at for at in found if at[0] == "file/0"] == [("file/0", JournaledProgress(each)) for each in (3, 7, 5)]
    assert [at for at in found if at[0] == "file/1"] == [("file/1", JournaledProgress(4))]
    # And a connection after it goes on where it ended
    await asyncio.to_thread(committed, kafka, group, topic, [(0, 8)])
    assert await heard(commits, 1) == [("file/0", JournaledProgress(8))]
