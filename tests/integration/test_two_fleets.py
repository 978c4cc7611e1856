"""Two fleets whose stores.yaml names one store on a server: the second one does not start, though all else is its
own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.parts import StoreSettings
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, Unavailable
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem

ANY = Demand({Cell("f", 2): 1}, frozenset(), 1, 1 << 20)


async def runs(folder: Path, which: str, choice: dict[str, Any]) -> None:
    """Starts and stops a store server with data of its own, whose stores.yaml has this one choice."""
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "stores.yaml").write_text(json.dumps({"durability": "relaxed", which: choice}))
    part = StoreSettings(data=folder / "data", listen="127.0.0.1:0", config=config).build()
    try:
        await part.start()
    finally:
        await part.stop()


async def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, choice: dict[str, Any]) -> str:
    """The words that refuse the second fleet, where the first one, and a node without certificates, are let in."""
    shop = Fleet(tmp_path / "fleets" / "shop", monkeypatch, "shop")
    staging = Fleet(tmp_path / "fleets" / "staging", monkeypatch, "staging")
    with shop.as_(None):
        await runs(tmp_path / "shop", which, choice)
    with shop.as_(shop.issue("node")):
        await runs(tmp_path / "shop", which, choice)
    with shop.as_(None):
        await runs(tmp_path / "other", which, choice)
    with staging.as_(staging.issue("node")), pytest.raises(ConfigError) as refusal:
        await runs(tmp_path / "staging", which, choice)
    with shop.as_(shop.issue("node", "second")):
        await runs(tmp_path / "second", which, choice)
    return str(refusal.value)


async def test_a_queue_on_postgresql(
    postgres_server: str, postgres_schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = {"engine": "postgres", "url": postgres_server, "schema": postgres_schema}
    said = await refused(tmp_path, monkeypatch, "queue", choice)
    assert said.startswith("the queue on PostgreSQL at ")
    assert f"in the schema {postgres_schema!r}, is of fleet shop, and this is fleet staging" in said


@pytest.mark.parametrize("which", ["queue", "delay_log"])
async def test_a_queue_and_a_delay_log_on_redis(
    own_redis: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    said = await refused(tmp_path, monkeypatch, which, {"engine": "redis", "url": own_redis().address})
    assert said.startswith(
        "the queue 'tailrace' in Redis at " if which == "queue" else "the log 'tailrace' in Redis at "
    )
    assert "is of fleet shop, and this is fleet staging" in said


async def test_a_store_that_was_away_at_the_start_is_refused_before_anything_is_taken_from_it(
    own_redis: Callable[..., Any], tmp_path: Path
) -> None:
    # Given a queue of one fleet, with something in it, on a server that is away
    server = own_redis()
    config = StoresConfig(durability="relaxed", queue={"engine": "redis", "url": server.address})
    async with EmbeddedStores(tmp_path / "shop", config, fleet="shop") as shop:
        await shop.queue.submit([NewItem(Kind("f", 2), b"its")])
    server.program.kill()
    # When another fleet starts meanwhile
    async with EmbeddedStores(tmp_path / "staging", config, fleet="staging") as staging:
        with pytest.raises(Unavailable):
            await staging.queue.counts()
        server.program.start()
        # Then it takes nothing when the server is back
        async with asyncio.timeout(30):
            with pytest.raises(ConfigError, match="is of fleet shop, and this is fleet staging"):
                await staging.queue.lease(ANY, 30.0, 0)
        with pytest.raises(ConfigError, match="is of fleet shop"):
            await staging.queue.submit([NewItem(Kind("f", 2), b"another's")])
    async with EmbeddedStores(tmp_path / "shop", config, fleet="shop") as shop:
        assert (await shop.queue.counts())["new"] == 1
