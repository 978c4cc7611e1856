"""Health checks and reflection, gRPC's standard ones, which every server of the platform offers."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

#: The tailers of a process together; one alone is this, a slash and its name.
TAILERS = "tailrace.Tailers"


class Health:
    """SERVING only while the part is ready, under its service's full name and under "" (the whole server).

    `register` is for `channel.serve`. Not serving until `set(True)`.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._servicer: Any = health.aio.HealthServicer()

    def register(self, server: grpc.aio.Server) -> None:
        """Adds both services to a server."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        reflection.enable_server_reflection((self._service, health.SERVICE_NAME, reflection.SERVICE_NAME), server)

    async def set_also(self, name: str, serving: bool) -> None:
        """Says whether something is well that has no server of its own; it is asked for by this name."""
        words = health_pb2.HealthCheckResponse
        await self._servicer.set(name, words.SERVING if serving else words.NOT_SERVING)

    async def set(self, serving: bool) -> None:
        """Says whether the part is ready."""
        words = health_pb2.HealthCheckResponse
        status = words.SERVING if serving else words.NOT_SERVING
        for name in ("", self._service):
            await self._servicer.set(name, status)
