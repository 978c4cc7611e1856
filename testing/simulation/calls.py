"""Calls in the shape of grpc.aio over a simulated network: unary ones and streams, both sides of each."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from .exchange import REFUSED, Exchange, Net, Pipe, Serving, rpc_error
from .host import Host
from .loop import SimLoop
from .recording import kind_of


class UnaryCall(Exchange):
    """A unary call. Its reply, or its failure, resolves `future`."""

    def __init__(self, net: Net, client: Host, address: str, path: str, forms: tuple[Any, Any]) -> None:
        super().__init__(net, client, address, path)
        self.future: asyncio.Future[Any] = self._client_loop.create_future()
        self._kind = ""
        self._serialize, self._parse = forms

    async def run(self, request: Any, timeout: float | None) -> Any:
        """Makes the call, from the client's side."""
        net, client = self.net, self.client
        data = self._serialize(request)
        self._kind = kind_of(request)
        self.tell("does", self._kind, data)
        server = self._server()
        net.world.say(client.name, f"calls {self._address} {self.path} {len(data)}")
        target = client if server is None else server.host
        kept_back = net.kept_back(client, target)
        if kept_back and server is not None:
            net.world.after(REFUSED, self.broken, "connection reset on the way")
            net.world.after(kept_back, self._lands, server, server.host.loop, data)
        elif net.chance(net.weather.drop_request, client, target):
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

    def _lands(self, server: Serving, loop: SimLoop | None, data: Any) -> None:
        """Delivers a request long after its caller was told that it failed: the server of then may still be there."""
        if server.host.loop is loop and not server.closed:
            self.net.world.count("late writes")
            server.host.call(self.begin, server, data)

    def begin(self, server: Serving, data: Any) -> None:
        """Starts a handler. The first answer counts."""
        handler = server.handlers.get(self.path)
        if handler is None:
            self.send(False, self.failed, rpc_error(grpc.StatusCode.UNIMPLEMENTED, self.path))
            return
        loop = server.host.loop
        assert loop is not None
        self._tasks.append(loop.create_task(self._handle(server, handler, data), name=self.path))

    async def _handle(self, server: Serving, handler: Any, data: Any) -> None:
        server.under_way[self] = None
        context = CallContext(self)
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
        """Sends the client the handler's refusal."""
        self.send(False, self.failed, error)

    def _replied(self, data: bytes) -> None:
        if not self.future.done():
            self.tell("is told", self._kind, data)
            self.future.set_result(data)
        self.finish()

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        if not self.future.done():
            self.tell("is told", f"{self._kind} failed", str(error.code()).encode())
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
        self.session = ""  # what its first message calls it (rights.py), and when that was
        self.opened = 0.0
        net.world.say(client.name, f"opens {address} {path}")
        self.knock(None)

    async def read(self) -> Any:
        """Returns the next message, or EOF."""
        data = await self._in.read()
        if data is grpc.aio.EOF:
            return data
        message = self._parse(data)
        self.tell("is told", kind_of(message), data)
        return message

    async def write(self, message: Any) -> None:
        """Sends a message."""
        self.net.said(self, message)
        if self._in.ended:
            raise asyncio.InvalidStateError("the call is over")
        data = self._serialize(message)
        self.tell("does", kind_of(message), data)
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

    def begin(self, server: Serving, data: Any) -> None:
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

    async def _handle(self, server: Serving, handler: Any, context: StreamContext) -> None:
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
        """Sends the client the handler's refusal."""
        self.send(False, self._ended, error)

    def _cancelled(self) -> None:
        self.cancel_handlers()
        self.finish()

    def failed(self, error: grpc.aio.AioRpcError) -> None:
        self._in.end(error)
        self.finish()

    def deliver(self, data: bytes) -> None:
        """Takes a message that arrived at the client."""
        self._in.put(data)


class CallContext:
    """The context that a unary handler is given."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that a caller shows: here none."""
        return ()

    def peer(self) -> str:
        """The caller's address, here that of a process on the same machine."""
        return "unix:"

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Any = ()) -> None:
        """Ends the call with a status."""
        self._call.abort(rpc_error(code, details, trailing))
        raise grpc.aio.AbortError("aborted")


class StreamContext(CallContext):
    """The context that a stream's handler is given."""

    def __init__(self, call: StreamCall, handler: Any, loop: SimLoop) -> None:
        super().__init__(call)
        self._in = Pipe(loop)
        self._handler = handler

    def receive(self, data: bytes) -> None:
        """Takes a message that arrived at the server."""
        self._in.put(data)

    async def read(self) -> Any:
        """Returns the next message, or EOF."""
        data = await self._in.read()
        return data if data is grpc.aio.EOF else self._handler.request_deserializer(data)

    async def write(self, message: Any) -> None:
        """Sends a message."""
        call = self._call
        call.net.said(call, message)
        if call.over:
            raise asyncio.InvalidStateError("the call is over")
        data = self._handler.response_serializer(message)
        call.net.world.say(call.server_name, f"to {call.client.name}: {type(message).__name__} {len(data)}")
        call.send(False, call.deliver, data)
        await asyncio.sleep(0)
