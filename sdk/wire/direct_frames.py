"""One socket with frames both ways, for `direct.py`: four bytes of length, one of what the frame is, and that."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

#: What a frame is: a call's method (a connection's first), a message, or the status that a call ended with (its last).
CALL, MESSAGE, STATUS = 0, 1, 2
#: Bytes that came and nobody has read yet, and bytes written and not yet sent, at which the other side has to wait.
UNREAD = 1 << 20
UNSENT = 1 << 20

_HEADER = struct.Struct(">IB")


class Wire(asyncio.Protocol):
    """One socket with frames both ways. `opened` is told when it is connected. Invariant: `_unread` counts the bytes of
    `_frames`; while they are UNREAD or more, the socket is not read."""

    def __init__(self, largest: int, opened: Callable[[Wire], None] = lambda wire: None) -> None:
        self.over = False
        self._largest = largest
        self._opened = opened
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[tuple[int, bytes]] = deque()
        self._unread = 0
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    # ---- what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        buffer, start, size = self._buffer, 0, _HEADER.size
        buffer += data
        while len(buffer) - start >= size:
            length, kind = _HEADER.unpack_from(buffer, start)
            if length > self._largest or kind > STATUS:
                self.close()  # it speaks of something else, such as HTTP/2
                return
            if len(buffer) - start < size + length:
                break
            start += size
            self._frames.append((kind, bytes(buffer[start : start + length])))
            self._unread += size + length
            start += length
        del buffer[:start]
        if self._unread >= UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over = True
        self._writable.set()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # ---- what calls do

    async def read(self) -> tuple[int, bytes] | None:
        """The next frame; None when the connection is over and all of it was read. One reader at a time."""
        while not self._frames:
            if self.over:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        kind, body = self._frames.popleft()
        was, self._unread = self._unread, self._unread - _HEADER.size - len(body)
        if was >= UNREAD > self._unread and not self.over and self._transport is not None:
            self._transport.resume_reading()
        return kind, body

    def send(self, kind: int, body: bytes) -> None:
        """Writes a frame, or keeps it until it can be written."""
        if self._transport is not None and not self.over:
            self._transport.write(_HEADER.pack(len(body), kind) + body)

    async def sent(self) -> None:
        """Waits until more may be written, and for one turn of the loop: what comes in it may share the next frame."""
        await asyncio.sleep(0)
        await self._writable.wait()

    def close(self) -> None:
        """Ends the connection, after what was written."""
        self.over = True
        if self._transport is not None:
            self._transport.close()
        self._wake()

    def abort(self) -> None:
        """Ends the connection now."""
        self.over = True
        if self._transport is not None:
            self._transport.abort()
        self._wake()
