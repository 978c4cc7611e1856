"""Channels and servers in the shape of grpc.aio over a simulated network."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from .calls import StreamCall, UnaryCall
from .exchange import Exchange, Net, rpc_error
from .host import Host


class Channel:
    """Counterpart of grpc.aio.Channel, with the methods that generated stubs call."""

    def __init__(self, net: Net, host: Host, address: str) -> None:
        self._net = net
        self._host = host
        self._address = address
        self._calls: list[Exchange] = []

    def unary_unary(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """Makes a method that takes one message and answers one."""
        forms = (request_serializer, response_deserializer)

        async def call(request: Any, timeout: float | None = None, **_: Any) -> Any:
            return await UnaryCall(self._net, self._host, self._address, path, forms).run(request, timeout)

        return call

    def stream_stream(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """Makes a method with a stream each way."""
        forms = (request_serializer, response_deserializer)

        def call(**_: Any) -> StreamCall:
            stream = StreamCall(self._net, self._host, self._address, path, forms)
            self._calls = [*[call for call in self._calls if not call.over], stream]
            return stream

        return call

    def unary_stream(self, path: str, *_: Any, **__: Any) -> Any:
        """Makes a method that answers with a stream, and fails: nobody in the simulation calls one."""

        def call(request: Any, **_: Any) -> Any:
            raise rpc_error(grpc.StatusCode.UNIMPLEMENTED, f"{path} is not in the simulated network")

        return call

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives up the calls that are open."""
        for call in self._calls:
            if isinstance(call, StreamCall):
                call.cancel()


class Server:
    """Counterpart of grpc.aio.Server, with the methods by which generated code registers."""

    def __init__(self, net: Net, host: Host, address: str) -> None:
        self.host = host
        self.handlers: dict[str, Any] = {}
        self.under_way: dict[Any, None] = {}
        self.closed = False
        self._net = net
        self._address = address

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Does nothing: the same handlers are registered by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Registers handlers by the names of their methods."""
        self.handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    async def stop(self, grace: float | None) -> None:
        """Takes no new calls, and ends those under way after `grace` seconds."""
        self.closed = True
        if self._net.servers.get(self._address) is self:
            del self._net.servers[self._address]
        loop = asyncio.get_running_loop()
        until = loop.time() + (grace or 0.0)
        while self.under_way and loop.time() < until:  # noqa: ASYNC110 - simulated time
            await asyncio.sleep(0.01)
        for call in list(self.under_way):
            call.broken("the server stopped")
