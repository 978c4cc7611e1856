"""Health checks and reflection, gRPC's standard ones, which every server of the platform offers."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

#: The health service's name for all tailers of a process; one tailer: this, a slash and its name.
TAILERS = "tailrace.Tailers"


class Health:
    """The health of a part: SERVING while it is ready, under its service's full name and under "" (the whole server).

    `register` is for `channel.serve`. NOT_SERVING until `set(True)`.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._servicer: Any = health.aio.HealthServicer()

    def register(self, server: grpc.aio.Server) -> None:
        """Adds health checks and reflection to a server."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        reflection.enable_server_reflection((self._service, health.SERVICE_NAME, reflection.SERVICE_NAME), server)

    async def set_also(self, name: str, serving: bool) -> None:
        """Sets the health of something without a server of its own, such as a tailer, under this name."""
        words = health_pb2.HealthCheckResponse
        await self._servicer.set(name, words.SERVING if serving else words.NOT_SERVING)

    async def set(self, serving: bool) -> None:
        """Sets whether the part is ready."""
        words = health_pb2.HealthCheckResponse
        status = words.SERVING if serving else words.NOT_SERVING
        for name in ("", self._service):
            await self._servicer.set(name, status)
