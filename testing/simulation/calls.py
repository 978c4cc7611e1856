"""Channels, servers and calls in the shape of grpc.aio, over a simulated network."""

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


class Net(Protocol):
    """What calls ask of the network (network.Network)."""

    world: World
    weather: Any
    servers: Any
    exchanges: Any

    def arrival(self, source: Host, target: Host) -> float: ...

    def chance(self, chance: float, source: Host, target: Host) -> bool: ...


def rpc_error(code: grpc.StatusCode, details: str, trailing: Iterable[tuple[str, str]] = ()) -> grpc.aio.AioRpcError:
    """The error that grpc.aio would raise."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


class Pipe:
    """One direction of a stream as its receiver sees it: messages in order, then an end."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self._messages: deque[Any] = deque()
        self._end: Any = None
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: Any) -> None:
        """A message arrives."""
        if self._end is None:
            self._messages.append(message)
            self._wake()

    def end(self, end: Any) -> None:
        """Nothing more arrives: EOF, or the error that every read raises from then on."""
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
        """The next message, or the end."""
        while not self._messages:
            if isinstance(self._end, BaseException):
                raise self._end
            if self._end is not None:
                return self._end
            self._waiter = self.loop.create_future()
            await self._waiter
        return self._messages.popleft()


class Exchange:
    """One call, unary or a stream, from a process to whoever serves an address. `loop`s name the processes: what
    arrives for one that has ended is lost. Invariant: in `net.exchanges` until it is over."""

    def __init__(self, net: Net, client: Host, address: str, path: str) -> None:
        assert client.loop is not None
        self.net = net
        self.client = client
        self.path = path
        self.server_name = address.rpartition(":")[0]
        self.target: Host | None = None
        self.over = False
        self._address = address
        self._client_loop: SimLoop = client.loop
        self._server_loop: SimLoop | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._last = {True: 0.0, False: 0.0}  # by direction: when the last message of it arrives
        net.exchanges[self] = None

    # ---- to be filled in by the two kinds

    def begin(self, server: Server, data: Any) -> None:
        """The call has arrived at its server."""

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        """The client is told how it failed."""

    # ---- messages

    def _server(self) -> Server | None:
        server: Server | None = self.net.servers.get(self._address)
        return server

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

    def _arrived(self, server: Server, data: Any) -> None:
        loop = server.host.loop
        if loop is None or loop is not self._server_loop or server.closed:
            self.broken("the server is gone")
        elif not self.over:
            server.host.call(self.begin, server, data)

    def send(self, towards_server: bool, call: Callable[..., None], *args: Any) -> None:
        """One message of the exchange: in order, and lost when the receiver's process is gone."""
        target = self.target
        if target is None or self.over:
            return
        source, sink = (self.client, target) if towards_server else (target, self.client)
        if self.net.chance(self.net.weather.reset, source, sink):
            self.broken("connection reset")
            return
        arrival = max(self._last[towards_server], self.net.arrival(source, sink))
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

    # ---- ends

    def broken(self, why: str) -> None:
        """The connection is gone: both sides that still run learn of it."""
        if not self.over:
            self.to_client(self.failed, rpc_error(grpc.StatusCode.UNAVAILABLE, why))
            self.to_server(self.cancel_handlers)
            self.finish()

    def finish(self) -> None:
        """Over: nothing that is still under way arrives."""
        self.over = True
        self.net.exchanges.pop(self, None)

    def cancel_handlers(self) -> None:
        """What grpc.aio does with the handlers of a call whose client is gone."""
        for task in self._tasks:
            task.cancel()


class UnaryCall(Exchange):
    """A unary call. Its reply, or its failure, resolves `future`."""

    def __init__(self, net: Net, client: Host, address: str, path: str, forms: tuple[Any, Any]) -> None:
        super().__init__(net, client, address, path)
        self.future: asyncio.Future[Any] = self._client_loop.create_future()
        self._serialize, self._parse = forms

    async def run(self, request: Any, timeout: float | None) -> Any:
        """The call from the client's side."""
        net, client = self.net, self.client
        data = self._serialize(request)
        server = self._server()
        net.world.say(client.name, f"calls {self._address} {self.path} {len(data)}")
        target = client if server is None else server.host
        if net.chance(net.weather.drop_request, client, target):
            net.world.after(REFUSED, self.broken, "connection reset before the call")
        else:
            self.knock(data, repeat=net.chance(net.weather.repeat, client, target))
        try:
            async with asyncio.timeout(timeout):
                return self._parse(await self.future)
        except TimeoutError:
            raise rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "deadline exceeded") from None
        finally:
            if not self.over:
                self.send(True, self.cancel_handlers)
                self.net.world.after(1.0, self.finish)

    def begin(self, server: Server, data: Any) -> None:
        """A handler runs; the first answer counts."""
        handler = server.handlers.get(self.path)
        if handler is None:
            self.send(False, self.failed, rpc_error(grpc.StatusCode.UNIMPLEMENTED, self.path))
            return
        loop = server.host.loop
        assert loop is not None
        self._tasks.append(loop.create_task(self._handle(server, handler, data), name=self.path))

    async def _handle(self, server: Server, handler: Any, data: Any) -> None:
        server.under_way[self] = None
        context = Context(self)
        try:
            reply = handler.response_serializer(await handler.unary_unary(handler.request_deserializer(data), context))
        except grpc.aio.AbortError:
            return
        except Exception as error:
            self.send(False, self.failed, rpc_error(grpc.StatusCode.UNKNOWN, repr(error)))
            return
        finally:
            server.under_way.pop(self, None)
        net = self.net
        if net.chance(net.weather.drop_reply, self.client, server.host):
            self.broken("connection reset after the call")
        else:
            self.send(False, self._replied, reply)

    def abort(self, error: grpc.aio.AioRpcError) -> None:
        """The handler refuses."""
        self.send(False, self.failed, error)

    def _replied(self, data: bytes) -> None:
        if not self.future.done():
            self.future.set_result(data)
        self.finish()

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # nobody may be waiting any more
        self.finish()


class StreamCall(Exchange):
    """A stream of messages both ways: the client's side, as grpc.aio's StreamStreamCall."""

    def __init__(self, net: Net, client: Host, address: str, path: str, forms: tuple[Any, Any]) -> None:
        super().__init__(net, client, address, path)
        self._serialize, self._parse = forms
        self._in = Pipe(self._client_loop)
        self._context: StreamContext | None = None
        self._early: list[bytes] = []
        net.world.say(client.name, f"opens {address} {path}")
        self.knock(None)

    async def read(self) -> Any:
        """The next message, or EOF."""
        data = await self._in.read()
        return data if data is grpc.aio.EOF else self._parse(data)

    async def write(self, message: Any) -> None:
        """Sends a message."""
        if self._in.ended:
            raise asyncio.InvalidStateError("the call is over")
        data = self._serialize(message)
        self.net.world.say(self.client.name, f"to {self.server_name}: {type(message).__name__} {len(data)}")
        self.send(True, self._receive, data)
        await asyncio.sleep(0)

    def cancel(self) -> bool:
        """Gives the call up."""
        if self._in.ended:
            return False
        self._in.end(asyncio.CancelledError())
        if not self.over:
            self.send(True, self._cancelled)
        return True

    def begin(self, server: Server, data: Any) -> None:
        handler = server.handlers.get(self.path)
        loop = server.host.loop
        if handler is None or loop is None:
            self.broken("unimplemented")
            return
        self._context = StreamContext(self, handler, loop)
        for early in self._early:
            self._context.receive(early)
        self._tasks.append(loop.create_task(self._handle(server, handler, self._context), name=self.path))

    def _receive(self, data: bytes) -> None:
        if self._context is None:
            self._early.append(data)
        else:
            self._context.receive(data)

    async def _handle(self, server: Server, handler: Any, context: StreamContext) -> None:
        server.under_way[self] = None
        end: Any = grpc.aio.EOF
        try:
            await handler.stream_stream(None, context)
        except grpc.aio.AbortError:
            return
        except asyncio.CancelledError:
            end = rpc_error(grpc.StatusCode.CANCELLED, "cancelled by the server")
        except Exception as error:
            end = rpc_error(grpc.StatusCode.UNKNOWN, repr(error))
        finally:
            server.under_way.pop(self, None)
        self.send(False, self._ended, end)

    def _ended(self, end: Any) -> None:
        self._in.end(end)
        self.finish()

    def abort(self, error: grpc.aio.AioRpcError) -> None:
        """The handler refuses."""
        self.send(False, self._ended, error)

    def _cancelled(self) -> None:
        self.cancel_handlers()
        self.finish()

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        self._in.end(error)
        self.finish()

    def deliver(self, data: bytes) -> None:
        """A message arrives at the client."""
        self._in.put(data)


class Context:
    """What a unary handler is given."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Any = ()) -> None:
        """Ends the call with a status."""
        self._call.abort(rpc_error(code, details, trailing))
        raise grpc.aio.AbortError("aborted")


class StreamContext(Context):
    """What a stream's handler is given."""

    def __init__(self, call: StreamCall, handler: Any, loop: SimLoop) -> None:
        super().__init__(call)
        self._in = Pipe(loop)
        self._handler = handler

    def receive(self, data: bytes) -> None:
        """A message arrives."""
        self._in.put(data)

    async def read(self) -> Any:
        """The next message, or EOF."""
        data = await self._in.read()
        return data if data is grpc.aio.EOF else self._handler.request_deserializer(data)

    async def write(self, message: Any) -> None:
        """Sends a message."""
        call = self._call
        if call.over:
            raise asyncio.InvalidStateError("the call is over")
        data = self._handler.response_serializer(message)
        call.net.world.say(call.server_name, f"to {call.client.name}: {type(message).__name__} {len(data)}")
        call.send(False, call.deliver, data)
        await asyncio.sleep(0)


class Channel:
    """As grpc.aio.Channel: makes what the generated stubs call."""

    def __init__(self, net: Net, host: Host, address: str) -> None:
        self._net = net
        self._host = host
        self._address = address
        self._calls: list[Exchange] = []

    def unary_unary(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """A method that takes one message and answers one."""
        forms = (request_serializer, response_deserializer)

        async def call(request: Any, timeout: float | None = None, **_: Any) -> Any:
            return await UnaryCall(self._net, self._host, self._address, path, forms).run(request, timeout)

        return call

    def stream_stream(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """A method of streams."""
        forms = (request_serializer, response_deserializer)

        def call(**_: Any) -> StreamCall:
            stream = StreamCall(self._net, self._host, self._address, path, forms)
            self._calls = [*[call for call in self._calls if not call.over], stream]
            return stream

        return call

    async def close(self) -> None:
        """Gives up what is open."""
        for call in self._calls:
            if isinstance(call, StreamCall):
                call.cancel()


class Server:
    """As grpc.aio.Server: what generated code registers with."""

    def __init__(self, net: Net, host: Host, address: str) -> None:
        self.host = host
        self.handlers: dict[str, Any] = {}
        self.under_way: dict[Any, None] = {}
        self.closed = False
        self._net = net
        self._address = address

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Nothing: the same handlers are registered by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Handlers by the name of their method."""
        self.handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    async def stop(self, grace: float | None) -> None:
        """Takes nothing new, and ends what is under way after `grace` seconds."""
        self.closed = True
        if self._net.servers.get(self._address) is self:
            del self._net.servers[self._address]
        loop = asyncio.get_running_loop()
        until = loop.time() + (grace or 0.0)
        while self.under_way and loop.time() < until:  # noqa: ASYNC110 - simulated time
            await asyncio.sleep(0.01)
        for call in list(self.under_way):
            call.broken("the server stopped")
