"""A gateway that takes certificates, and at a second address tokens."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from scenes.fleet import Fleet
from tailrace.foundation.shown_token import VARIABLE
from tailrace.gateway.server import GatewayServer
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
