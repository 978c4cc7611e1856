"""Peers that connect to a listener and do not behave: over plain sockets, since the platform's own clients do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from itertools import count, islice

from tailrace.wire.direct import GREETING, NAMED, SCHEME
from tailrace.wire.direct_frames import CALL, MESSAGE

#: Seconds in which a peer whose bytes nobody takes is sure of it.
PATIENCE = 1.0

_SETTINGS = struct.pack(">HI", 4, 2**31 - 1)  # every stream may be sent as much as there is …


def direct_frame(kind: int, body: bytes) -> bytes:
    """One frame of `direct:`."""
    return struct.pack(">IB", len(body), kind) + body


def greeting(path: str) -> bytes:
    """The first frame of a call."""
    return direct_frame(CALL, GREETING + path.encode())


def message(body: bytes) -> bytes:
    """One message of a call."""
    return direct_frame(MESSAGE, body)


def connected(address: str) -> socket.socket:
    """A connection that takes in next to nothing: to host:port, direct:host:port, or a name."""
    if address.startswith(NAMED):
        made = socket.socket(socket.AF_UNIX)
        where: str | tuple[str, int] = "\0" + address.removeprefix(NAMED)
    else:
        made = socket.socket()
        host, _, port = address.removeprefix(SCHEME).rpartition(":")
        where = (host, int(port))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        made.connect(where)
    return made


async def pushed(peer: socket.socket, data: bytes, times: int) -> int:
    """Writes as often as the other side takes it, and reads nothing. Returns how often that was."""
    loop = asyncio.get_running_loop()
    for done in range(times):
        try:
            async with asyncio.timeout(PATIENCE):
                await loop.sock_sendall(peer, data)
        except (TimeoutError, OSError):
            return done
    return times


async def pushed_until(peer: socket.socket, calls: Iterator[bytes], done: Callable[[], bool]) -> None:
    """Writes calls, however slowly the other side takes them, until it is `done` or the connection is ended. Reads
    nothing. A server that is busy answers few of them, so their number cannot be told before."""
    left = memoryview(b"")
    while not done():
        if not left:
            left = memoryview(b"".join(islice(calls, 1000)))
        try:
            left = left[peer.send(left[:65536]) :]
        except BlockingIOError:
            pass
        except OSError:
            return
        await asyncio.sleep(0)


async def ended(peer: socket.socket) -> None:
    """Waits until the other side has ended this connection."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while await loop.sock_recv(peer, 1 << 20):
            pass


def http2(path: str) -> Iterator[bytes]:
    """Bytes of a connection of HTTP/2 that lets itself be sent anything: its preface, and calls without arguments, as
    many as are taken."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, _SETTINGS)
    preface += _frame(8, 0, 0, struct.pack(">I", 2**30))
    named = {b":path": path.encode(), b":authority": b"x", b"content-type": b"application/grpc", b"te": b"trailers"}
    headers = b"\x83\x86" + b"".join(_header(name, value) for name, value in named.items())
    yield preface
    for stream in count(1, 2):
        yield _frame(1, 4, stream, headers) + _frame(0, 1, stream, bytes(5))


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def _header(name: bytes, value: bytes) -> bytes:
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
