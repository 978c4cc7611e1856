"""Gateways over the real embedded stores, in this process or in one of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet
from scenes.spool_door import Opened, SpoolDoor
from scenes.token_door import Door

from tailrace.gateway.rules import spool
from tailrace.gateway.server import GatewayServer
from tailrace.model.backoff import Pauses
from tailrace.model.function_spec import FunctionSpec
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient

PROCESS = Path(__file__).parent / "gateway_process.py"


@pytest.fixture(scope="session")
def open_stores() -> Callable[[Path], Any]:
    """Opens the embedded stores in a folder: an async context manager."""
    spec = importlib.util.spec_from_file_location("gateway_process", PROCESS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gateway_process"] = module
    spec.loader.exec_module(module)
    return module.open_stores  # type: ignore[no-any-return]


@pytest.fixture
async def stores(tmp_path: Path, open_stores: Callable[[Path], Any]) -> AsyncIterator[Any]:
    async with open_stores(tmp_path) as opened:
        await opened.control.register([FunctionSpec("add"), FunctionSpec("send_email")])
        yield opened


@pytest.fixture
async def gateway(stores: Any) -> AsyncIterator[GatewayServer]:
    running = stores.gateway()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def door(stores: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    fleet = Fleet(tmp_path / "fleet", monkeypatch)
    with fleet.as_(fleet.issue("gateway")):
        server = stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0")
        await server.start()
    yield Door(fleet=fleet, server=server, stores=stores)
    await server.stop()


@pytest.fixture
async def opened(stores: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Opened]:
    """Opens gateways with a spool, which look soon whether their store is back."""
    monkeypatch.setattr(spool, "SPOOL", Pauses(0.005, 0.02))
    doors: list[SpoolDoor] = []

    async def door(**bounds: object) -> SpoolDoor:
        doors.append(await SpoolDoor(stores, tmp_path / "spool", **bounds).open())
        return doors[-1]

    yield door
    for each in doors:
        await each.close()


@pytest.fixture
async def client(gateway: GatewayServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(gateway.address, timeout=2) as running:
        yield running


@pytest.fixture
async def operator(gateway: GatewayServer) -> AsyncIterator[GatewayClient]:
    async with GatewayClient(gateway.address) as running:
        yield running


class GatewayProcess:
    """A gateway of its own over the stores in `folder`, with the function `add` registered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        port = self.address.rpartition(":")[2] or "0"
        command = [sys.executable, str(PROCESS), str(self.folder), port]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@pytest.fixture
def gateway_process(tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "data")
    process.folder.mkdir()
    process.start()
    yield process
    process.kill()
