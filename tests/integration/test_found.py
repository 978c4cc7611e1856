"""A gateway and a scheduler that listen anywhere are found by clients without an address, for as long as they live."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly import address_notices, parts
from tailrace.assembly.node import Node
from tailrace.assembly.settings import ConfigDirectory
from tailrace.foundation.notices import notices
from tailrace.foundation.run_dir import VARIABLE, RunDir, cards
from tailrace.model.function_spec import FunctionSpec
from tailrace.sdk.discovery import find_scheduler
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.shared_secret import ENTRY, CallerCheck

from ..scenes.lone_node import until

Nodes = Callable[[str], Awaitable[Node]]


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "run"))
    return tmp_path / "run"


@asynccontextmanager
async def node(data: Path) -> AsyncIterator[Node]:
    """A node on free ports, which knows the function `add`; nobody runs it."""
    listen = dict.fromkeys(("gateway", "store", "delay"), "127.0.0.1:0")
    running = Node(data, ConfigDirectory(None), scheduler="127.0.0.1:1", listen=listen)
    await running.start()
    try:
        async with GatewayClient(running.address) as client:
            await client.register_functions("worker", [FunctionSpec("add")])
        yield running
    finally:
        await running.drain(0)
        await running.stop()


async def test_clients_go_along_when_their_node_comes_back_elsewhere(run_dir: Path, tmp_path: Path) -> None:
    # Given a client of each kind that found the node
    async with AsyncExitStack() as stack:
        async with node(tmp_path / "data") as first:
            blocking = stack.enter_context(tailrace.Client())
            awaiting = await stack.enter_async_context(tailrace.AsyncClient())
            assert blocking.gateway == awaiting.gateway == first.address
            handles = [await asyncio.to_thread(blocking.submit, "add", a=1), await awaiting.submit("add", a=2)]
        # When it comes back at another address, beside a node of other data
        async with node(tmp_path / "other"), node(tmp_path / "data") as again:
            assert again.address != first.address
            # Then both go on with it
            found = await asyncio.to_thread(blocking.status_many, [each.id for each in handles])
            assert [each.function for each in found] == ["add", "add"]
            assert (await awaiting.status(handles[0].id)).function == "add"
            await asyncio.gather(*(awaiting.submit("add", a=number) for number in range(20)))
            assert blocking.gateway == awaiting.gateway == again.address
            # And a new client is asked which one it means
            with pytest.raises(tailrace.ConfigError, match=rf"data in {tmp_path}/other\n(.|\n)*say which one"):
                tailrace.Client()


async def test_a_client_goes_to_no_other_platform(run_dir: Path, tmp_path: Path) -> None:
    async with node(tmp_path / "data"):
        client = tailrace.AsyncClient(timeout=0.3)
        await client.submit("add", a=1)
    async with client, node(tmp_path / "other"):
        with pytest.raises(tailrace.Unavailable, match="It was asked because it is the one gateway"):
            await client.submit("add", a=2)


async def test_a_client_that_was_made_first_finds_the_node(run_dir: Path, tmp_path: Path) -> None:
    async with tailrace.AsyncClient() as client:
        early = asyncio.create_task(client.submit("add", a=1))
        async with node(tmp_path / "data"):
            await client.status((await early).id)


async def test_a_gateway_apart_and_a_scheduler_are_found_too(run_dir: Path, tmp_path: Path) -> None:
    store = parts.StoreSettings(data=tmp_path / "data", listen="127.0.0.1:0").build()
    await store.start()
    there = store.address  # type: ignore[attr-defined]
    gateway = parts.GatewaySettings(store=there, listen="127.0.0.1:0").build()
    await gateway.start()
    front = gateway.address  # type: ignore[attr-defined]
    scheduler = parts.SchedulerSettings(listen="127.0.0.1:0", gateway=front).build()
    await scheduler.start()
    try:
        assert tailrace.Client().gateway == gateway.address  # type: ignore[attr-defined]
        assert find_scheduler().addresses == (scheduler.address,)  # type: ignore[attr-defined]
    finally:
        for part in (scheduler, gateway):
            await part.drain(0)
            assert not any(run_dir.glob("scheduler.*"))
        for part in (scheduler, gateway, store):
            await part.stop()
    assert not any(run_dir.glob("*.notice"))


@pytest.mark.parametrize("what", ["notice", "directory"])
async def test_what_somebody_removes_is_told_again_with_the_same_secret(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(address_notices, "LOOK", 0.01)
    # Given a node that asks for the secret of its card
    card = RunDir(run_dir).open()
    ENTRY.set(CallerCheck(card))
    async with node(tmp_path / "data") as running:
        # When somebody removes what tells of it
        if what == "directory":
            shutil.rmtree(run_dir)
        else:
            [told] = run_dir.glob("*.notice")
            told.unlink()

        # Then it is told again, and a client gets in
        async def found() -> bool:
            return bool(notices("gateway"))

        await until(found)
        assert [each.secret for each in cards()] == [card.secret]
        async with tailrace.AsyncClient() as client:
            assert client.gateway == running.address
            await client.submit("add", a=1)
    assert not any(run_dir.glob("*.notice"))


async def test_where_nothing_can_be_told_it_runs_and_says_so(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(run: RunDir, name: str, alone: int, shared: int, folder: int | None = None) -> None:
        if name.endswith(".notice"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunDir, "share", full)
    with caplog.at_level(logging.WARNING, "tailrace.parts"):
        async with node(tmp_path / "data") as running, tailrace.AsyncClient(running.address) as client:
            await client.submit("add", a=1)
    assert f"commands need --gateway {running.address}: {run_dir}: No space left on device" in caplog.text
    assert not any(run_dir.glob("*.notice"))
