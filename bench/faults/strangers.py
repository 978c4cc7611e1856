"""Strangers: callers without any right that begin messages of gRPC and never end them. They speak HTTP/2 just well
enough for that, and keep to the windows that they are given, as a peer must that wants to be kept."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections import defaultdict
from collections.abc import AsyncIterator

#: A method of one message of each part that listens; what is called says nothing of who calls.
METHODS = {
    "gateway": "/tailrace.v1.Gateway/Submit",
    "scheduler": "/tailrace.v1.Scheduler/Execute",
    "store": "/tailrace.v1.Stores/Call",
    "delay": "/tailrace.v1.Delay/Park",
}
#: Callers at once, the calls of each, and the bytes of each call's message that are sent as far as they are taken.
CALLERS, CALLS, SENT = 20, 20, 1 << 20

HEADERS, DATA, RESET, SETTINGS, PING, WINDOW, GOAWAY = 1, 0, 3, 4, 6, 8, 7
FRAME = 16_384
#: Bytes that each message announces.
ANNOUNCED = 15 << 20


class HalfMessages:
    """One connection. `begun` counts the bytes that the other side took of messages that are not ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._initial = 65_535
        self._window: defaultdict[int, int] = defaultdict(lambda: self._initial)
        self._listening = asyncio.create_task(self._listen())
        self._moved = asyncio.Event()
        self.begun = 0
        self.ended: set[int] = set()

    @classmethod
    async def connect(cls, address: str, secured: ssl.SSLContext | None = None) -> HalfMessages:
        """Connects to an address. Raises OSError."""
        host, _, port = address.rpartition(":")
        made = cls(*await asyncio.open_connection(host, int(port), ssl=secured))
        made._writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        made._window[0] = 65_535
        return made

    async def close(self) -> None:
        """Gives the connection up, with all that was begun."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()

    async def begin(self, path: str, numbers: list[int], *, size: int = ANNOUNCED - 1) -> None:
        """Calls a method once for each number, and sends that much of each call's message, as far as the other side
        takes it. Returns when nothing was taken for a second."""
        named = {b":path": path.encode(), b":authority": b"x", b"content-type": b"application/grpc", b"te": b"trailers"}
        headers = b"\x83\x86" + b"".join(_header(*each) for each in named.items())
        left = {2 * number + 1: size for number in numbers}
        for stream in left:
            self._writer.write(frame(HEADERS, 4, stream, headers))
        opening = dict.fromkeys(left, b"\x00" + struct.pack(">I", ANNOUNCED))
        try:
            while left:
                sent = False
                self._moved.clear()
                for stream in [*left]:
                    room = min(FRAME, left[stream], self._window[0], self._window[stream])
                    if stream in self.ended:
                        del left[stream]
                    elif room > 16:
                        body = opening.pop(stream, b"")
                        body += bytes(room - len(body))
                        self._window[0] -= room
                        self._window[stream] -= room
                        left[stream] -= room
                        self.begun += room
                        self._writer.write(frame(DATA, 0, stream, body))
                        sent = True
                    if left.get(stream) == 0:
                        del left[stream]
                async with asyncio.timeout(1):
                    await self._writer.drain()
                    if not sent:
                        await self._moved.wait()
        except (TimeoutError, OSError):
            return

    async def _listen(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(9)
                (length,) = struct.unpack(">I", b"\0" + head[:3])
                kind, flags, (stream,) = head[3], head[4], struct.unpack(">I", head[5:])
                body = await self._reader.readexactly(length)
                if kind == WINDOW:
                    self._window[stream] += struct.unpack(">I", body)[0]
                elif kind == SETTINGS and not flags & 1:
                    for at in range(0, length, 6):
                        name, value = struct.unpack(">HI", body[at : at + 6])
                        if name == 4:
                            for each in self._window:
                                self._window[each] += (value - self._initial) if each else 0
                            self._initial = value
                    self._writer.write(frame(SETTINGS, 1, 0, b""))
                elif kind == PING and not flags & 1:
                    self._writer.write(frame(PING, 1, 0, body))
                elif kind == RESET or (kind == HEADERS and flags & 1):
                    self.ended.add(stream)
                elif kind == GOAWAY:
                    return
                self._moved.set()
        except (asyncio.IncompleteReadError, OSError):
            return


@contextlib.asynccontextmanager
async def strangers(address: str, method: str) -> AsyncIterator[None]:
    """Has strangers begin hundreds of messages and end none. Yields when the address takes no more of them; their
    connections last as long as the `with`."""
    peers: list[HalfMessages] = []
    try:
        with contextlib.suppress(OSError):  # it takes no connection either
            for _ in range(CALLERS):
                peers.append(await HalfMessages.connect(address))
        await asyncio.gather(*(peer.begin(method, [*range(CALLS)], size=SENT) for peer in peers))
        yield
    finally:
        for peer in peers:
            await peer.close()


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """Makes a frame of HTTP/2."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def _header(name: bytes, value: bytes) -> bytes:
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
