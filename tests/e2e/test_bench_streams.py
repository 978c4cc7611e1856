"""The scenarios of Redis Streams and of the delay service run whole, small."""

from pathlib import Path

import pytest

from tailrace.bench import delay
from tailrace.bench.kafka_server import kafka_broker
from tailrace.bench.redis_stream import redis_stream
from tailrace.model.errors import ConfigError, InvalidRequest


def quiet(what: str, share: float) -> None:
    assert what and share >= 0


async def test_entries_of_a_redis_stream(redis_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_BENCH_REDIS", redis_server)
    figures = await redis_stream(tmp_path, 3000, quiet)
    assert figures["items"] == 3000 and figures["items_per_s"] > 0


@pytest.mark.parametrize("engine", ["queue", "redis"])
async def test_what_is_parked_comes_due(
    engine: str, redis_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILRACE_BENCH_REDIS", redis_server)
    monkeypatch.setattr(delay, "WAIT", 1)
    figures = await delay.delay(tmp_path, 3000, engine, quiet)
    assert figures["parks_per_s"] > 0 and figures["due_per_s"] > 0


async def test_an_engine_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="unknown engine 'rabbit'"):
        await delay.delay(tmp_path, 10, "rabbit", quiet)


def test_where_no_broker_is_to_be_had_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAILRACE_BENCH_KAFKA", raising=False)
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"KAFKA_HOME is .*--kafka HOST:PORT"), kafka_broker(tmp_path / "kafka"):
        pass


def test_a_broker_that_is_named_is_taken(tmp_path: Path) -> None:
    with kafka_broker(tmp_path, "127.0.0.1:9092") as address:
        assert address == "127.0.0.1:9092"
