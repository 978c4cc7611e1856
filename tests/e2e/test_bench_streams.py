"""The scenarios of Redis Streams and of the delay service run whole, small."""

from pathlib import Path

import pytest

from tailrace.bench import delay
from tailrace.bench.redis_stream import redis_stream
from tailrace.sdk.model.errors import ConfigError, InvalidRequest


def quiet(what: str, share: float) -> None:
    assert what and share >= 0


async def test_entries_of_a_redis_stream(redis_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_BENCH_REDIS", redis_server)
    figures = await redis_stream(tmp_path, 3000, quiet)
    assert figures["items"] == 3000 and figures["items_per_s"] > 0


@pytest.mark.parametrize("engine", ["sqlite", "redis"])
async def test_what_is_parked_comes_due(
    engine: str, redis_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILRACE_BENCH_REDIS", redis_server)
    monkeypatch.setattr(delay, "WAIT", 1)
    figures = await delay.delay(tmp_path, 3000, engine, quiet)
    assert figures["parks_per_s"] > 0 and figures["due_per_s"] > 0


async def test_an_engine_must_be_known_and_its_server_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAILRACE_BENCH_KAFKA", raising=False)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(InvalidRequest, match="unknown engine 'rabbit'"):
        await delay.delay(tmp_path / "a", 10, "rabbit", quiet)
    with pytest.raises(ConfigError, match="TAILRACE_BENCH_KAFKA"):
        await delay.delay(tmp_path / "b", 10, "kafka", quiet)
