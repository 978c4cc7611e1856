"""A gateway that takes certificates, and at a second address tokens."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scenes.fleet import Fleet
from scenes.gateway_process import Stores, open_stores
from tailrace.foundation.shown_token import VARIABLE
from tailrace.gateway.server import GatewayServer
from tailrace.model.function_spec import FunctionSpec
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.ports.tokens import TokenOrder

DAY = 86_400.0


class Door(SimpleNamespace):
    """A gateway that takes certificates, and at a second address tokens."""

    fleet: Fleet
    server: GatewayServer
    stores: Any

    @contextmanager
    def as_(self, secret: str) -> Iterator[str]:
        """Acts with this token, and yields the address of the door."""
        bare = self.fleet.folder / "bare"
        bare.mkdir(exist_ok=True)
        shutil.copy(self.fleet.folder / "ca.crt", bare)
        with self.fleet.as_(bare):
            os.environ[VARIABLE] = secret
            try:
                yield self.server.token_address
            finally:
                del os.environ[VARIABLE]

    async def made(self, *rights: str, lasts: float = DAY, name: str = "ci") -> str:
        with self.fleet.as_(self.fleet.issue("operator")):
            async with GatewayClient(self.server.address) as operator:
                return (await operator.create_token(TokenOrder(name, rights, lasts))).secret

    async def revoke(self, name: str = "ci") -> None:
        with self.fleet.as_(self.fleet.issue("operator")):
            async with GatewayClient(self.server.address) as operator:
                await operator.revoke_token(name)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    """Stores of which a test may have gateways."""
    async with open_stores(tmp_path) as opened:
        await opened.control.register([FunctionSpec("add"), FunctionSpec("send_email")])
        yield opened


@pytest.fixture
async def door(stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    """A gateway over them that takes certificates and tokens."""
    fleet = Fleet(tmp_path / "fleet", monkeypatch)
    with fleet.as_(fleet.issue("gateway")):
        server = stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0")
        await server.start()
    yield Door(fleet=fleet, server=server, stores=stores)
    await server.stop()
