"""The scenario `rivals` on Kafka: tailrace and programs that a team would write instead, on the same records of the
same broker, one after the other in the same run."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kafka.admin import KafkaAdminClient

from ...model.errors import TailraceError
from ...stores.log.kafka import KafkaLog
from ...stores.log.log import Record
from ..figures import Figures, Progress
from ..kafka import PARTITIONS, Broker
from ..redis_server import redis_server
from ..workload import PAYLOAD
from .roster import Rival
from .running import pace
from .settings import RivalSettings

#: Seconds after the last item in which a group must have committed all; FastStream commits every five.
TOLD_WITHIN = 20.0


async def rivals(broker: Broker, against: Sequence[Rival], folder: Path, count: int, progress: Progress) -> Figures:
    """Runs records of 200 bytes on four partitions → a no-op, offsets committed. Measures items a second of tailrace
    and of each rival, CPU by item without the brokers', and tailrace's rate as a multiple of the rival's. A slow rival
    gets fewer records, in a topic of its own. Raises TailraceError when a group has not committed all."""
    run = uuid.uuid4().hex[:10]
    topics: dict[int, str] = {}
    log = broker.log()
    try:
        for items in sorted({count, *(_items(rival, count) for rival in against)}):
            topics[items] = f"tailrace-bench-{run}-{items}"
            await _fill(log, topics[items], items, progress)
    finally:
        await log.close()
    told = partial(_told, broker.bootstrap, topics[count], count)
    own = await broker.throughput(folder, topics[count], count, progress, told)
    cpu = sum(value for name, value in own.items() if name.endswith("_cpu_us_per_item"))
    figures = {"items_per_s": own["items_per_s"], "cpu_us_per_item": cpu}
    for rival in against:
        items = _items(rival, count)
        progress(rival.name, 0.0)
        tally, group = str(folder / f"{rival.name}-tally"), f"{rival.name}-{run}"
        with redis_server(folder / "redis", ()) if rival.redis else contextlib.nullcontext("") as redis:
            settings = RivalSettings(tally, redis, bootstrap=broker.bootstrap, topic=topics[items], group=group)
            told = partial(_told, broker.bootstrap, group, items)
            found = await pace(rival, settings, items, folder / f"{rival.name}.log", told)
        figures |= {
            f"{rival.name}_items_per_s": found.items_per_s,
            f"{rival.name}_cpu_us_per_item": 1e6 * found.cpu_per_item,
            f"{rival.name}_ratio": own["items_per_s"] / found.items_per_s,
        }
    return figures


def _items(rival: Rival, count: int) -> int:
    return max(1, int(count * rival.share))


async def _fill(log: KafkaLog, topic: str, count: int, progress: Progress) -> None:
    await log.create(topic, PARTITIONS)
    for first in range(0, count, 1024):
        await log.append(topic, first // 1024 % PARTITIONS, [Record(PAYLOAD)] * min(1024, count - first))
        progress("filling the topics", first / count)


async def _told(bootstrap: str, group: str, count: int) -> None:
    """Waits until the broker knows that the group is through. Raises TailraceError when it is not told in time."""
    until = time.monotonic() + TOLD_WITHIN
    while (known := await asyncio.to_thread(_committed, bootstrap, group)) < count:
        if time.monotonic() > until:
            raise TailraceError(f"the group {group} did {count} records, and told the broker of {known}")
        await asyncio.sleep(0.2)


def _committed(bootstrap: str, group: str) -> int:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        offsets = admin.list_group_offsets({group: None})[group]
        return sum(max(0, int(each.offset)) for each in offsets.values())
    finally:
        admin.close()
