"""The Redis Stream source obeys the laws of stream sources on a real server: one stream, three, and fields as JSON."""

from __future__ import annotations

import json
import uuid

import pytest
import redis

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.tailers.sources.redis_entries import RedisStreamOptions
from tailrace.tailers.sources.redis_stream import RedisStreamSource
from tailrace.testing.conformance.source import StreamSourceLaws


class Bench:
    def __init__(self, url, checkpoints, streams):
        self.streams = [f"t:{uuid.uuid4()}" for _ in range(streams)]
        self.client = redis.Redis.from_url(url)
        self.checkpoints = checkpoints
        self.options = RedisStreamOptions(url=url, streams=self.streams, payload={"field": "body"})
        self.turn = 0

    def source(self):
        return RedisStreamSource(self.options, self.checkpoints, "laws")

    async def put(self, payloads):
        for payload in payloads:
            self.client.xadd(self.streams[self.turn % len(self.streams)], {"body": payload, "n": self.turn})
            self.turn += 1

    def close(self):
        self.client.delete(*self.streams)
        self.client.close()


@pytest.fixture(params=[1, 3])
async def over(request, redis_server, tmp_path):
    async with EmbeddedStores(tmp_path / "data") as stores:
        bench = Bench(redis_server, stores.checkpoints, request.param)
        yield bench
        bench.close()


class TestRedisStreamSource(StreamSourceLaws):
    @pytest.fixture
    async def bench(self, over):
        return over


async def test_all_fields_as_json_and_as_headers(over) -> None:
    over.client.xadd(over.streams[0], {"order": 7, "tenant": "acme"}, id="1700000000123-5")
    over.client.xadd(over.streams[0], {"bytes": b"\xff"}, id="1700000000123-6")
    options = over.options.model_copy(update={"payload": "json", "headers": ("tenant",), "key_field": "order"})
    source = RedisStreamSource(options, over.checkpoints, "json")
    await source.open({})
    (batch,) = await source.read(10, 1 << 20, 1.0)
    assert json.loads(batch.payloads[0]) == {"order": "7", "tenant": "acme"}
    assert (batch.keys[0], batch.headers[0], batch.times[0]) == ("7", (("tenant", "acme"),), 1700000000.123)
    assert batch.positions == [1700000000123 << 20 | 5, 1700000000123 << 20 | 6]
    assert "UTF-8" in batch.refused[1]
    await source.close()
