"""The gateway that a command talks to: the one that is named, else one that is found (`discovery.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..foundation.terminal import call
from .discovery import find_gateways

if TYPE_CHECKING:
    from ..wire.gateway import GatewayClient

T = TypeVar("T")


def ask(gateway: str | None, question: Callable[[GatewayClient], Awaitable[T]]) -> T:
    """Asks the gateway at this address (None: one that is found) and returns the answer to `question`."""

    async def conversation() -> T:
        async with gateway_client(gateway) as client:
            return await question(client)

    return call(conversation())


def gateway_client(gateway: str | None) -> GatewayClient:
    """A client of the gateway at this address; None: of one that is found."""
    from ..wire.gateway import GatewayClient  # loads gRPC, which `tailrace --help` does without

    found = find_gateways(gateway)
    return GatewayClient(found.addresses[0], reason=found.reason)
