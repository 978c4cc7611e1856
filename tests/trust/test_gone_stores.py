"""A store's file that is missing or empty: no node takes it for a new store before somebody says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import commands
from scenes.lone_node import node

import tailrace
from tailrace.assembly.parts import GatewaySettings
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.wire.gateway import GatewayClient


def removed(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


async def used(folder: Path) -> None:
    """Has a node keep a workload and a gate in the folder, and ends it."""
    async with (
        node(folder) as running,
        GatewayClient(running.addresses["gateway"]) as operator,
        tailrace.AsyncClient(running.addresses["gateway"]) as client,
    ):
        await operator.register_functions("test", [FunctionSpec("work")])
        await operator.set_gate(Gate("work", "", "pause", "ann", "the database moves"))
        await client.submit("work")


@pytest.mark.trust(point=5)
@pytest.mark.parametrize("name", ["queue.db", "state.db"])
@pytest.mark.parametrize("lost", [removed, emptied])
async def test_a_node_does_not_start_over_a_store_that_is_gone_until_somebody_means_it(
    tmp_path: Path, name: str, lost: Callable[[Path], None]
) -> None:
    # Given a data directory with workloads and an operator's pause, of which one file is lost
    await used(tmp_path)
    data = tmp_path / "data"
    lost(data / name)
    for _ in range(2):
        # When a node is started there, then it says which file that is, and what to do
        with pytest.raises(tailrace.TailraceError) as refused:
            async with node(tmp_path):
                pass
        assert name in str(refused.value) and "the last run left a store" in str(refused.value)
        assert f"tailrace store begin-anew {name}" in str(refused.value)
    # And when somebody says so, it begins anew, and the others are as they were
    said = await asyncio.to_thread(commands.tailrace, "store", "begin-anew", name, "--data", str(data))
    assert said.returncode == 0, said.stderr
    async with node(tmp_path) as running, GatewayClient(running.addresses["gateway"]) as operator:
        gates = [gate.why for gate in (await operator.limits()).gates]
        waiting = sum((await operator.overview()).queue.values())
        assert (gates, waiting) == (([], 1) if name == "state.db" else (["the database moves"], 0))
    # And later runs start as ever
    async with node(tmp_path):
        pass


@pytest.mark.trust(point=5)
async def test_a_spool_that_is_gone_is_missed_like_a_store(
    tmp_path: Path, postgres_server: str, postgres_schema: str
) -> None:
    # Given a node with a spool before its queue on a server, whose file is lost while it is stopped
    config = tmp_path / "config"
    config.mkdir()
    there = {"engine": "postgres", "url": postgres_server, "schema": postgres_schema}
    (config / "stores.yaml").write_text(json.dumps({"queue": there, "durability": "relaxed"}))
    async with node(tmp_path, config):
        pass
    removed(tmp_path / "data" / "spool.db")
    # When it is started, then it misses what was accepted into it, until somebody says that it is to begin anew
    with pytest.raises(tailrace.TailraceError, match=r"spool\.db is missing, and the last run left a store there"):
        async with node(tmp_path, config):
            pass
    said = commands.tailrace("store", "begin-anew", "spool.db", "--data", str(tmp_path / "data"))
    assert said.returncode == 0, said.stderr
    for _ in range(2):
        async with node(tmp_path, config):
            pass


@pytest.mark.trust(point=5)
@pytest.mark.parametrize("lost", [removed, emptied])
async def test_the_spool_of_a_gateway_of_its_own_is_missed_too(tmp_path: Path, lost: Callable[[Path], None]) -> None:
    # Given a gateway that runs alone and has a spool, whose file is lost while it is stopped
    data = tmp_path / "gateway"

    async def runs() -> None:
        async with node(tmp_path) as stores:
            gateway = GatewaySettings(store=stores.addresses["store"], listen="127.0.0.1:0", data=data).build()
            try:
                await gateway.start()
            finally:
                await gateway.stop()

    await runs()
    lost(data / "spool.db")
    # When it is started, then it misses what was accepted into it, until somebody says that it is to begin anew
    for _ in range(2):
        with pytest.raises(tailrace.TailraceError, match=r"spool\.db is .*, and the last run left a store there"):
            await runs()
    said = await asyncio.to_thread(commands.tailrace, "store", "begin-anew", "spool.db", "--data", str(data))
    assert said.returncode == 0, said.stderr
    for _ in range(2):
        await runs()
