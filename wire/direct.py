"""Streams between processes of one machine over plain sockets (`stream.py`).

Between machines gRPC carries sessions. Within one, most of the time of a single item's frame is gRPC's own: HTTP/2, and
a thread that polls and wakes the event loop. A stream here has a connection of its own, and ends with it. The dialing
side's first frame names the method, the serving side's last one the status; between them messages go both ways, in
protobuf.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any

from grpc import StatusCode
from grpc.aio import AioRpcError

from ..foundation.lifecycle import end_all
from ..model.address import parse_address
from ..model.errors import TailraceError
from .bounds import CONNECTION, USUAL, Endings, PeerBounds
from .bounds import GREETING as NO_GREETING
from .direct_frames import CALL, MESSAGE, STATUS, Wire
from .malformed_messages import NoMessage, reader
from .shared_secret import CallerCheck, Proof, shown_to
from .statuses import CallStatus, error_of_status, refused, status_of
from .stream import StreamClosed, StreamHandler, StreamMethod

#: Prefixes of addresses that are dialed in this way: of all, and of names in the kernel of this machine (Linux abstract
#: sockets, which are gone with their listener).
SCHEME = "direct:"
NAMED = SCHEME + "@"
#: The first frame: this, then the method's path.
GREETING = b"tailrace-direct/1 "

_CODES = {code.value[0]: code for code in StatusCode}

_LOG = logging.getLogger("tailrace.wire")


class DirectChannel:
    """The streams to one address. `largest`: most bytes of a message."""

    def __init__(self, address: str, largest: int) -> None:
        self.address = address
        self._largest = largest
        self._proof = Proof(address)
        self._open: set[DirectStream] = set()

    def open(self, method: StreamMethod) -> DirectStream:
        stream = DirectStream(self, method, self._open.discard)
        self._open.add(stream)
        return stream

    async def close(self) -> None:
        for stream in list(self._open):
            stream.cancel()

    async def connect(self) -> tuple[Wire, set[int] | None]:
        """Connects to the address; returns the socket, and the ids of the users who listen there (None: the system
        does not say). Raises OSError."""
        loop, address = asyncio.get_running_loop(), self.address
        if address.startswith(NAMED):
            found = named_socket(address.removeprefix(NAMED), socket.socket.connect)
            _, wire = await loop.create_unix_connection(lambda: Wire(self._largest), sock=found)
            peer = wire.peer
            return wire, None if peer is None else {peer}
        place = parse_address(address.removeprefix(SCHEME))
        _, wire = await loop.create_connection(lambda: Wire(self._largest), place.bare_host, place.port)
        return wire, self._proof.listening()


class DirectStream:
    """The dialing side of a stream. It connects when it first sends."""

    def __init__(self, channel: DirectChannel, method: StreamMethod, forget: Callable[[DirectStream], None]) -> None:
        self._channel = channel
        self._path = method.path
        self._parse = method.reply.FromString
        self._forget = forget
        self._wire: Wire | None = None
        self._cancelled = False

    async def send(self, message: Any, /) -> None:
        wire = self._wire or await self._connect()
        await wire.room()
        if wire.over or self._cancelled:
            raise StreamClosed("the stream is over")
        wire.send(MESSAGE, message.SerializeToString())
        await wire.sent()

    async def receive(self) -> Any | None:
        frame = None if self._wire is None else await self._wire.read()
        if frame is None:
            raise self._closed(CallStatus(StatusCode.UNAVAILABLE, "the connection was closed"))
        kind, body = frame
        if kind == MESSAGE:
            return self._parse(body)
        self.cancel()
        code, details, metadata = json.loads(body)
        if code == StatusCode.OK.value[0]:
            return None
        status = CallStatus(
            _CODES.get(code, StatusCode.UNKNOWN), details, tuple((key, value) for key, value in metadata)
        )
        raise self._closed(status)

    def cancel(self) -> Any:
        self._cancelled = True
        if self._wire is not None:
            self._wire.abort()
        self._forget(self)

    async def _connect(self) -> Wire:
        try:
            wire, listening = await self._channel.connect()
        except OSError as error:
            why = f"failed to connect: {error.strerror or error}"
            raise self._closed(CallStatus(StatusCode.UNAVAILABLE, why)) from None
        try:
            shown = shown_to(listening, self._channel.address)
        except AioRpcError as error:
            wire.abort()
            raise self._closed(CallStatus(StatusCode.UNAVAILABLE, error.details() or "")) from None
        self._wire = wire
        wire.send(CALL, GREETING + " ".join((self._path, *shown)).encode())
        return wire

    def _closed(self, status: CallStatus) -> StreamClosed:
        return StreamClosed(status.details, error_of_status(status, self._channel.address))


class DirectServer:
    """Serves streams by the method that they are opened for. `largest`: most bytes of a message.

    Invariant: `_connections` counts the sockets that are open, greeted or not."""

    def __init__(
        self,
        handlers: Mapping[StreamMethod, StreamHandler],
        largest: int,
        bounds: PeerBounds = USUAL,
        endings: Endings | None = None,
        entry: CallerCheck | None = None,
    ) -> None:
        self._handlers = {method.path: (method, handle) for method, handle in handlers.items()}
        self._largest = largest
        self._bounds = bounds
        self._endings = endings or Endings()
        self._entry = entry
        self._connections = 0
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> int:
        """Begins to listen and returns the actual port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._wire, host.strip("[]"), port)
        return int(self._server.sockets[0].getsockname()[1])

    async def listen_named(self, name: str) -> None:
        """Begins to listen under a name that nobody has. Raises OSError."""
        made = named_socket(name, socket.socket.bind)
        self._server = await asyncio.get_running_loop().create_unix_server(self._wire, sock=made)

    async def stop(self, grace: float | None) -> None:
        """Ends now, and breaks off open connections."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await end_all(self._streams)

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
        stream = asyncio.get_running_loop().create_task(self._serve(wire), name="direct-stream")
        self._streams.add(stream)
        stream.add_done_callback(self._streams.discard)

    async def _greeting(self, wire: Wire) -> tuple[int, bytes] | None:
        try:
            async with asyncio.timeout(self._bounds.greeting):
                return await wire.read()
        except TimeoutError:
            what = f"a connection was ended: it named no method within {self._bounds.greeting:g} s"
            self._endings.note(NO_GREETING, what)
            return None

    async def _serve(self, wire: Wire) -> None:
        """Serves one connection from its greeting to its status."""
        try:
            status = await self._answer(wire)
            if status is not None:
                _end(wire, status)
        except asyncio.CancelledError:
            _end(wire, CallStatus(StatusCode.CANCELLED, "cancelled by the server"))
            raise
        finally:
            wire.close()

    async def _answer(self, wire: Wire) -> CallStatus | None:
        """Answers a connection; returns its status. None: it speaks another protocol, and ends without a word."""
        try:
            greeting = await self._greeting(wire)
            if greeting is None or greeting[0] != CALL or not greeting[1].startswith(GREETING):
                return None
            path, _, shown = greeting[1].removeprefix(GREETING).decode(errors="replace").partition(" ")
            entry = self._entry
            if entry is not None and not (entry.admits(shown.split()) and entry.admits_user(wire.peer)):
                return refused(entry.refusal())
            if path not in self._handlers:
                return CallStatus(StatusCode.UNIMPLEMENTED, f"{path[:200]}: no method for streams has this name")
            method, handle = self._handlers[path]
            await handle(_ServedStream(wire, method))
        except StreamClosed:
            pass  # the caller was gone before the answer
        except TailraceError as error:
            return status_of(error)
        except Exception as error:
            _LOG.error("a session's connection failed", exc_info=error)
            return CallStatus(StatusCode.UNKNOWN, repr(error)[:1000])
        return CallStatus(StatusCode.OK)


class _ServedStream:
    """The serving side of a stream, as a handler gets it."""

    def __init__(self, wire: Wire, method: StreamMethod) -> None:
        self._wire = wire
        self._read = reader(method.request, method.path)

    async def send(self, message: Any, /) -> None:
        await self._wire.room()
        if self._wire.over:
            raise StreamClosed("the stream is over")
        self._wire.send(MESSAGE, message.SerializeToString())
        await self._wire.sent()

    async def receive(self) -> Any | None:
        frame = await self._wire.read()
        if frame is None or frame[0] != MESSAGE:
            return None
        message = self._read(frame[1])
        if message.__class__ is NoMessage:
            raise message
        return message


def named_socket(name: str, use: Callable[[socket.socket, str], None]) -> socket.socket:
    """A socket that `use` binds or connects to a name, at once since that is in the kernel. Raises OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        use(made, "\0" + name)
    except BaseException:
        made.close()
        raise
    return made


def _end(wire: Wire, status: CallStatus) -> None:
    code, details, metadata = status
    wire.send(STATUS, json.dumps([code.value[0], details, [list(pair) for pair in metadata]]).encode())
    wire.close()
