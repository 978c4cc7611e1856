"""Exchanges between a caller and the server at an address: messages in order, lost with the process they are for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import grpc

from .host import Host
from .loop import SimLoop
from .world import World

#: Seconds after which a call to where nobody listens is refused.
REFUSED = 0.001
#: Seconds between two messages of one direction at least: they stay in order.
NEXT = 1e-6


class Serving(Protocol):
    """A server as a call sees it (channel.Server)."""

    host: Host
    closed: bool
    handlers: dict[str, Any]
    under_way: dict[Any, None]


class Net(Protocol):
    """The network, as calls need it (network.Network)."""

    world: World
    weather: Any
    servers: Any
    exchanges: Any
    said: Any
    heard: Any

    def arrival(self, source: Host, target: Host) -> float: ...

    def kept_back(self, source: Host, target: Host) -> float: ...

    def chance(self, chance: float, source: Host, target: Host) -> bool: ...

    def server(self, address: str) -> Serving | None: ...


def rpc_error(code: grpc.StatusCode, details: str, trailing: Iterable[tuple[str, str]] = ()) -> grpc.aio.AioRpcError:
    """Makes the error that grpc.aio would raise."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


class Pipe:
    """One direction of a stream as its receiver sees it: messages in order, then an end."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self._messages: deque[Any] = deque()
        self._end: Any = None
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: Any) -> None:
        """Adds a message that arrived."""
        if self._end is None:
            self._messages.append(message)
            self._wake()

    def end(self, end: Any) -> None:
        """Ends the stream: after the messages that are there, every read returns EOF or raises this error."""
        if self._end is None:
            self._end = end
            self._wake()

    @property
    def ended(self) -> bool:
        return self._end is not None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> Any:
        """Returns the next message, or the end."""
        while not self._messages:
            if isinstance(self._end, BaseException):
                raise self._end
            if self._end is not None:
                return self._end
            self._waiter = self.loop.create_future()
            await self._waiter
        return self._messages.popleft()


class Exchange:
    """One call, unary or a stream, from a process to the server at an address. `loop`s name the processes: a message
    that arrives for one that has ended is lost. Invariant: in `net.exchanges` until it is over."""

    def __init__(self, net: Net, client: Host, address: str, path: str) -> None:
        assert client.loop is not None
        self.net = net
        self.client = client
        self.path = path
        self.server_name = address.rpartition(":")[0]
        self.target: Host | None = None
        self.over = False
        self._address = address
        self._serving: Serving | None = None
        self._client_loop: SimLoop = client.loop
        self._server_loop: SimLoop | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._last = {True: 0.0, False: 0.0}  # by direction: when the last message of it arrives
        net.exchanges[self] = None

    # ---- to be filled in by the two kinds

    def begin(self, server: Serving, data: Any) -> None:
        """Begins the call at its server."""

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        """Tells the client how the call failed."""

    # ---- messages

    def _server(self) -> Serving | None:
        """The server of the call, chosen once."""
        if self._serving is None:
            self._serving = self.net.server(self._address)
            if self._serving is not None:
                self.server_name = self._serving.host.name
        return self._serving

    def knock(self, data: Any, *, repeat: bool = False) -> None:
        """Sends the call on its way."""
        server = self._server()
        world = self.net.world
        if server is None:
            world.after(REFUSED, self.to_client, self.failed, rpc_error(grpc.StatusCode.UNAVAILABLE, "refused"))
            return
        self.target = server.host
        self._server_loop = server.host.loop
        arrival = self.net.arrival(self.client, server.host)
        self._last[True] = arrival
        world.at(arrival, self._arrived, server, data)
        if repeat:
            world.at(self.net.arrival(self.client, server.host), self._arrived, server, data)

    def _arrived(self, server: Serving, data: Any) -> None:
        loop = server.host.loop
        if loop is None or loop is not self._server_loop or server.closed:
            self.broken("the server is gone")
        elif not self.over:
            server.host.call(self.begin, server, data)

    def send(self, towards_server: bool, call: Callable[..., None], *args: Any) -> None:
        """Sends one message of the exchange: in order, and lost when the receiver's process is gone."""
        target = self.target
        if target is None or self.over:
            return
        source, sink = (self.client, target) if towards_server else (target, self.client)
        if self.net.chance(self.net.weather.reset, source, sink):
            self.broken("connection reset")
            return
        arrival = max(self._last[towards_server] + NEXT, self.net.arrival(source, sink))
        self._last[towards_server] = arrival
        self.net.world.at(arrival, self.to_server if towards_server else self.to_client, call, *args)

    def to_client(self, call: Callable[..., None], *args: Any) -> None:
        """Runs something in the client's process, unless the exchange is over."""
        if not self.over and not self._client_loop.dead:
            self._client_loop.call_soon(call, *args)

    def to_server(self, call: Callable[..., None], *args: Any) -> None:
        """Runs something in the server's process."""
        loop = self._server_loop
        if not self.over and loop is not None and not loop.dead:
            loop.call_soon(call, *args)

    def tell(self, how: str, kind: str, data: bytes) -> None:
        """Tells the recording, if there is one, something that the client does or is told."""
        if self.net.heard is not None:
            self.net.heard(self.client.name, how, kind, data)

    # ---- ends

    def broken(self, why: str) -> None:
        """Breaks the connection: both sides that still run learn of it."""
        if not self.over:
            self.to_client(self.failed, rpc_error(grpc.StatusCode.UNAVAILABLE, why))
            self.to_server(self.cancel_handlers)
            self.finish()

    def finish(self) -> None:
        """Ends the exchange: no message that is still under way arrives."""
        self.over = True
        self.net.exchanges.pop(self, None)

    def cancel_handlers(self) -> None:
        """Cancels the handlers, as grpc.aio does when the client of a call is gone."""
        for task in self._tasks:
            task.cancel()
