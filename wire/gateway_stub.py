"""The stub of a client's connection: the gateway's calls, and `Call` for the ports whose fields go by name."""

from __future__ import annotations

from typing import Any

from .v1.gateway_pb2_grpc import GatewayStub
from .v1.stores_pb2_grpc import OperatorsStub


def gateway_stub(channel: Any) -> Any:
    """A stub for the gateway's service, with `Call` of the operators' service."""
    stub: Any = GatewayStub(channel)  # type: ignore[no-untyped-call]
    stub.Call = OperatorsStub(channel).Call  # type: ignore[no-untyped-call]
    return stub
