"""Streams between parts on one machine over plain sockets: `direct:host:port` where gRPC has `host:port`.

Between machines gRPC carries sessions. Between processes of one machine most of what a lone item's frame takes is
gRPC's own: HTTP/2, and a thread that polls and wakes the event loop. So a scheduler can be asked for the same methods
here too, with the same messages, statuses and errors, by the same stubs and servicers: `DirectChannel` and
`DirectServer` have as much of the shape of grpc.aio's as streams need. A call has a connection of its own; its end is
the connection's. The dialing side's first frame is the call's method, the serving side's last one its status; between
them messages go both ways, in protobuf.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from .bounds import CONNECTION, USUAL, Endings, PeerBounds
from .bounds import GREETING as NO_GREETING
from .direct_frames import CALL, MESSAGE, STATUS, Wire
from .entry import ERROR_KEY, CallerCheck, Proof, shown_to

#: What an address begins with that is dialed this way, and one that is a name in the kernel of this machine (of Linux:
#: an abstract socket, which is gone with whoever listens).
SCHEME = "direct:"
NAMED = SCHEME + "@"
#: The first frame: this, then the method's path.
GREETING = b"tailrace-direct/1 "

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_LOG = logging.getLogger("tailrace.wire")


def failed(code: grpc.StatusCode, details: str, trailing: Sequence[tuple[str, str]] = ()) -> grpc.aio.AioRpcError:
    """The error that gRPC raises for a call that ended so."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


class DirectChannel:
    """As grpc.aio.Channel, for methods of two streams: makes what the generated stubs call. It connects at a call's
    first write."""

    def __init__(self, address: str, largest: int) -> None:
        self.address = address
        self.largest = largest
        self.proof = Proof(address)
        self._calls: set[DialedCall] = set()

    def stream_stream(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """A method of streams."""

        def call(**_: Any) -> DialedCall:
            made = DialedCall(self, path, request_serializer, response_deserializer, self._calls.discard)
            self._calls.add(made)
            return made

        return call

    def unary_unary(self, path: str, *_: Any, **__: Any) -> Any:
        """A method that takes one message and answers one: gRPC's."""

        async def call(request: Any, **_: Any) -> Any:
            raise failed(grpc.StatusCode.UNIMPLEMENTED, f"{path} is asked by gRPC; {SCHEME} carries sessions only")

        return call

    unary_stream = unary_unary

    async def __aenter__(self) -> DirectChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Gives up what is open."""
        for call in list(self._calls):
            call.cancel()


class DialedCall:
    """A call from the dialing side."""

    def __init__(
        self,
        channel: DirectChannel,
        path: str,
        serialize: Callable[[Any], bytes],
        parse: Callable[[bytes], Any],
        forget: Callable[[DialedCall], None],
    ) -> None:
        self._channel = channel
        self._path = path
        self._serialize = serialize
        self._parse = parse
        self._forget = forget
        self._wire: Wire | None = None
        self._cancelled = False

    async def write(self, message: Any, /) -> None:
        """Sends a message. Raises what grpc.aio raises: UNAVAILABLE where nobody listens, InvalidStateError once the
        call is over."""
        wire = self._wire or await self._connect()
        await wire.room()
        if wire.over or self._cancelled:
            raise asyncio.InvalidStateError("the call is over")
        wire.send(MESSAGE, self._serialize(message))
        await wire.sent()

    async def read(self) -> Any:
        """The next message, or EOF when the call ended well; raises the status it ended with otherwise."""
        frame = None if self._wire is None else await self._wire.read()
        if frame is None:
            raise failed(grpc.StatusCode.UNAVAILABLE, "the connection was closed")
        kind, body = frame
        if kind == MESSAGE:
            return self._parse(body)
        self.cancel()
        code, details, trailing = json.loads(body)
        if code == grpc.StatusCode.OK.value[0]:
            return grpc.aio.EOF
        raise failed(_CODES.get(code, grpc.StatusCode.UNKNOWN), details, [(key, value) for key, value in trailing])

    def cancel(self) -> bool:
        """Gives the call up; False: it was over."""
        was, self._cancelled = self._cancelled, True
        if self._wire is not None:
            self._wire.abort()
        self._forget(self)
        return not was

    async def _connect(self) -> Wire:
        loop, address = asyncio.get_running_loop(), self._channel.address
        try:
            if address.startswith(NAMED):
                found = named_socket(address.removeprefix(NAMED), socket.socket.connect)
                _, wire = await loop.create_unix_connection(lambda: Wire(self._channel.largest), sock=found)
                peer = wire.peer
                listening = None if peer is None else {peer}
            else:
                host, _, port = address.removeprefix(SCHEME).rpartition(":")
                _, wire = await loop.create_connection(lambda: Wire(self._channel.largest), host.strip("[]"), int(port))
                listening = self._channel.proof.listening()
        except OSError as error:
            raise failed(grpc.StatusCode.UNAVAILABLE, f"failed to connect: {error.strerror or error}") from None
        try:
            shown = shown_to(listening, address)
        except grpc.aio.AioRpcError:
            wire.abort()
            raise
        self._wire = wire
        wire.send(CALL, GREETING + " ".join((self._path, *shown)).encode())
        return wire


class DirectServer:
    """As grpc.aio.Server, for methods of two streams: what generated code registers with.

    Invariant: `_connections` counts the sockets that are open, greeted or not."""

    def __init__(
        self,
        largest: int,
        bounds: PeerBounds = USUAL,
        endings: Endings | None = None,
        entry: CallerCheck | None = None,
    ) -> None:
        self._entry = entry
        self._largest = largest
        self._bounds = bounds
        self._endings = endings or Endings()
        self._connections = 0
        self._handlers: dict[str, Any] = {}
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Nothing: the same handlers are registered by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Handlers by the name of their method."""
        self._handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    async def listen(self, host: str, port: int) -> int:
        """Begins to listen; the actual port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._wire, host.strip("[]"), port)
        return int(self._server.sockets[0].getsockname()[1])

    async def listen_named(self, name: str) -> None:
        """Begins to listen under a name that nobody has. Raises OSError."""
        made = named_socket(name, socket.socket.bind)
        self._server = await asyncio.get_running_loop().create_unix_server(self._wire, sock=made)

    async def stop(self, grace: float | None) -> None:
        """Ends now: what is open is broken off."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _wire(self) -> Wire:
        return Wire(self._largest, self._opened, self._closed, bounds=self._bounds, endings=self._endings)

    def _closed(self, wire: Wire) -> None:
        self._connections -= 1

    def _opened(self, wire: Wire) -> None:
        self._connections += 1
        if self._connections > self._bounds.connections:
            self._endings.note(CONNECTION, f"a connection was refused: {self._bounds.connections} are open")
            wire.abort()
            return
        call = asyncio.get_running_loop().create_task(self._serve(wire), name="direct-call")
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _greeting(self, wire: Wire) -> tuple[int, bytes] | None:
        try:
            async with asyncio.timeout(self._bounds.greeting):
                return await wire.read()
        except TimeoutError:
            what = f"a connection was ended: it did not say for {self._bounds.greeting:g} s what it is for"
            self._endings.note(NO_GREETING, what)
            return None

    async def _serve(self, wire: Wire) -> None:
        """One connection from its greeting to its status."""
        try:
            greeting = await self._greeting(wire)
            if greeting is None or greeting[0] != CALL or not greeting[1].startswith(GREETING):
                return
            path, _, shown = greeting[1].removeprefix(GREETING).decode(errors="replace").partition(" ")
            entry = self._entry
            if entry is not None and not (entry.admits(shown.split()) and entry.admits_user(wire.peer)):
                refused = ((ERROR_KEY, "InvalidRequest"),)
                _end(wire, grpc.StatusCode.UNAUTHENTICATED, entry.refusal(), refused)
                return
            handler = self._handlers.get(path)
            if handler is None or handler.stream_stream is None:
                _end(wire, grpc.StatusCode.UNIMPLEMENTED, f"{path[:200]} is no method of streams here")
                return
            await handler.stream_stream(None, ServedCall(wire, handler))
            _end(wire, grpc.StatusCode.OK)
        except grpc.aio.AbortError:
            pass  # the handler has ended it
        except asyncio.CancelledError:
            _end(wire, grpc.StatusCode.CANCELLED, "cancelled by the server")
            raise
        except Exception as error:
            if wire.over and isinstance(error, asyncio.InvalidStateError):
                return  # whoever dialled was gone before the answer
            _LOG.error("a session's connection failed", exc_info=error)
            _end(wire, grpc.StatusCode.UNKNOWN, repr(error)[:1000])
        finally:
            wire.close()


class ServedCall:
    """A call from the serving side: what a handler is given."""

    def __init__(self, wire: Wire, handler: Any) -> None:
        self._wire = wire
        self._parse = handler.request_deserializer
        self._serialize = handler.response_serializer

    async def read(self) -> Any:
        """The next message, or EOF."""
        frame = await self._wire.read()
        return grpc.aio.EOF if frame is None or frame[0] != MESSAGE else self._parse(frame[1])

    async def write(self, message: Any, /) -> None:
        """Sends a message, once there is room for it."""
        await self._wire.room()
        if self._wire.over:
            raise asyncio.InvalidStateError("the call is over")
        self._wire.send(MESSAGE, self._serialize(message))
        await self._wire.sent()

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Sequence[tuple[str, str]] = ()) -> None:
        """Ends the call with a status."""
        _end(self._wire, code, details, trailing)
        raise grpc.aio.AbortError(details)


def named_socket(name: str, use: Callable[[socket.socket, str], None]) -> socket.socket:
    """A socket that `use` binds or connects to a name, which in one machine's kernel takes no time. Raises OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        use(made, "\0" + name)
    except BaseException:
        made.close()
        raise
    return made


def _end(wire: Wire, code: grpc.StatusCode, details: str = "", trailing: Sequence[tuple[str, str]] = ()) -> None:
    wire.send(STATUS, json.dumps([code.value[0], details, [[key, value] for key, value in trailing]]).encode())
    wire.close()
