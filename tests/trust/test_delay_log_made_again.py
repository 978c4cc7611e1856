"""A stream of the delay log on a server that was deleted and made again is not taken for the one that was read."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from kafka.admin import KafkaAdminClient

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import PositionsGone
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.log import Record

STREAM, DUE = "delay.5s", "@delay"
BYTES = 1 << 20


@pytest.fixture(params=["redis", "kafka"])
def log(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Callable[[], Awaitable[None]]]:
    """The options of a delay log on a server, and a function that deletes its stream."""
    prefix = f"again-{uuid.uuid4().hex[:8]}"
    if request.param == "redis":
        url = request.getfixturevalue("redis_server")

        async def delete_keys() -> None:
            with redis.Redis.from_url(url) as client:
                client.delete(*[f"{prefix}:{{log:{STREAM}/0}}:{each}" for each in ("records", "bounds")])

        return {"engine": "redis", "url": url, "prefix": prefix}, delete_keys
    kafka = request.getfixturevalue("kafka")

    async def delete_topic() -> None:
        def delete() -> None:
            admin = KafkaAdminClient(bootstrap_servers=kafka)
            try:
                admin.delete_topics([f"{prefix}.{STREAM}"])
            finally:
                admin.close()

        await asyncio.to_thread(delete)
        await asyncio.sleep(0.5)  # brokers forget it one after the other

    return {"engine": "kafka", "bootstrap_servers": kafka, "prefix": f"{prefix}."}, delete_topic


async def checkpoint(stores: EmbeddedStores) -> int | None:
    mark = (await stores.checkpoints.load(DUE)).get(STREAM)
    return None if mark is None else mark.position


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.05)
async def test_what_comes_into_a_stream_that_was_made_again_is_read_whole(
    tmp_path: Path, log: tuple[dict[str, Any], Callable[[], Awaitable[None]]]
) -> None:
    options, delete = log
    config = StoresConfig.model_validate({"delay_log": options})
    # Given a stream of which a node has moved three items on, and that a second start has seen
    async with EmbeddedStores(tmp_path, config) as stores:
        await stores.delay_log.append(STREAM, 0, [Record(b"")] * 3)
    async with EmbeddedStores(tmp_path, config) as stores:
        await stores.checkpoints.open(DUE, 1)
        await stores.checkpoints.commit(DUE, 1, {STREAM: Mark(3)})
    async with EmbeddedStores(tmp_path, config) as stores:
        assert await checkpoint(stores) == 3
    # When it is deleted and made again, with more items than were moved on
    await delete()
    async with EmbeddedStores(tmp_path / "other", config) as other:
        await other.delay_log.append(STREAM, 0, [Record(b"new")] * 5)
    # Then the next start reads all of it
    async with EmbeddedStores(tmp_path, config) as stores:
        assert await checkpoint(stores) is None
        assert len((await stores.delay_log.read(STREAM, 0, 0, 10, BYTES)).positions) == 5


@pytest.mark.trust(point=2)
@pytest.mark.parametrize("log", ["kafka"], indirect=True)
async def test_nothing_is_read_of_a_topic_that_was_made_again_meanwhile(
    tmp_path: Path, log: tuple[dict[str, Any], Callable[[], Awaitable[None]]]
) -> None:
    options, delete = log
    config = StoresConfig.model_validate({"delay_log": options})
    async with EmbeddedStores(tmp_path, config) as stores:
        # Given a node that reads a topic
        await stores.delay_log.append(STREAM, 0, [Record(b"")] * 3)
        await stores.delay_log.wait(STREAM, {0: 0}, 10)
        await stores.delay_log.bounds(STREAM)
        # When that is deleted and made again, with more items
        await delete()
        async with EmbeddedStores(tmp_path / "other", config) as other:
            await other.delay_log.append(STREAM, 0, [Record(b"new")] * 5)
        await stores.delay_log.bounds(STREAM)
        # Then nothing of it is read or trimmed from the middle, and the reason says what to do
        for call in (stores.delay_log.read(STREAM, 0, 3, 10, BYTES), stores.delay_log.trim(STREAM, 0, 3)):
            with pytest.raises(PositionsGone, match=r"made again.*Start this process again"):
                await call
