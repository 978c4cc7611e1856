"""Probes: whether a part is ready, asked from outside as an orchestrator would (Kubernetes, Docker, systemd).

A part that serves gRPC is asked by the standard health service. A worker serves nothing, so its metrics are asked:
it is ready while it is attached to a scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ..foundation.proxies import opened
from ..model import metrics
from ..model.address import read_address
from ..model.errors import InvalidRequest, TailraceError
from .channel import dial, error_of

HTTP = "http://"
#: Bytes of metrics that are looked at.
MOST_BYTES = 4 << 20


async def unready(addresses: Sequence[str], timeout: float) -> dict[str, str]:
    """The reason why each part is not ready, by its address; empty: it is. `timeout`: seconds for each. Raises
    InvalidRequest for a text that is no address."""
    found = await asyncio.gather(*(_asked(address, timeout) for address in addresses))
    return dict(zip(addresses, found, strict=True))


async def _asked(address: str, timeout: float) -> str:
    if "://" not in address and read_address(address) is not None:
        return await _health(address, timeout)
    if not address.startswith(HTTP):
        raise InvalidRequest(f"{address[:200]!r}: expected host:port, or {HTTP}host:port of a part's metrics")
    try:
        text = await asyncio.to_thread(_metrics, address, timeout)
    except (OSError, ValueError) as error:
        return f"it does not answer: {getattr(error, 'reason', error)}"
    name = f"{metrics.SESSIONS.prometheus} "
    sessions = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(name)]
    return "it is attached to no scheduler" if sessions and float(sessions[0]) == 0 else ""


def _metrics(address: str, timeout: float) -> str:
    where = address if address.rstrip("/").endswith("/metrics") else f"{address.rstrip('/')}/metrics"
    with opened(where, timeout) as answer:
        return str(answer.read(MOST_BYTES).decode("utf-8", "replace"))


async def _health(address: str, timeout: float) -> str:
    try:
        async with dial(address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
    except grpc.aio.AioRpcError as error:
        return str(error_of(error, address)).replace(address, "it", 1)
    except TailraceError as error:
        return str(error)
    serving = health_pb2.HealthCheckResponse.ServingStatus
    return "" if reply.status == serving.SERVING else f"it is {serving.Name(reply.status).lower().replace('_', ' ')}"
