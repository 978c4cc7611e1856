"""Gateways over the real embedded stores, in this process or in one of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scenes import gateway_process as scene
from scenes.spool_door import Opened, SpoolDoor
from scenes.token_door import door, stores

from tailrace.gateway.rules import spool
from tailrace.gateway.server import GatewayServer
from tailrace.model.backoff import Pauses
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient

__all__ = ["door", "stores"]


@pytest.fixture(scope="session")
def open_stores() -> Callable[[Path], Any]:
    """Opens the embedded stores in a folder: an async context manager."""
    return scene.open_stores


@pytest.fixture
async def gateway(stores: Any) -> AsyncIterator[GatewayServer]:
    running = stores.gateway()
    await running.start()
    yield running
    await running.stop()


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
        command = [sys.executable, str(scene.__file__), str(self.folder), port]
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
