"""The gateway that a command asks: found where none is named, asked in one conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ..foundation.terminal import call
from .discovery import find_gateways

if TYPE_CHECKING:
    from ..wire.gateway import GatewayClient

T = TypeVar("T")


def ask(gateway: str | None, question: Callable[[GatewayClient], Awaitable[T]]) -> T:
    """One conversation with the gateway at this address; None: where it is found."""

    async def conversation() -> T:
        async with gateway_client(gateway) as client:
            return await question(client)

    return call(conversation())


def gateway_client(gateway: str | None) -> GatewayClient:
    """A client of the gateway at this address; None: where it is found."""
    from ..wire.gateway import GatewayClient  # loads gRPC, which `tailrace --help` does without

    found = find_gateways(gateway)
    return GatewayClient(found.addresses[0], reason=found.reason)
