"""One socket with frames both ways, for `direct.py`. A frame: four bytes of length, one of its kind, its content."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from .bounds import FRAME, UNREAD_REPLIES, USUAL, Endings, PeerBounds
from .shared_secret import peer_user

#: Kinds of frames: a call's method (a connection's first), a message, or the status of a call's end (its last).
CALL, MESSAGE, STATUS = 0, 1, 2
#: Bytes that came and nobody has read yet, and bytes written and not yet sent, at which the other side has to wait.
UNREAD = 1 << 20
UNSENT = 1 << 20
#: The longest first frame: it names a method.
LONGEST_GREETING = 4096

_HEADER = struct.Struct(">IB")


class Wire(asyncio.Protocol):
    """One socket with frames both ways. `opened` is told when it is connected, on the serving side; `closed` when it no
    longer is. A peer that begins a frame and does not end it within `bounds.frame`, or reads nothing for
    `bounds.stalled` while bytes wait for it, is ended and noted.

    Invariants: `_unread` counts the bytes of `_frames`; while they are UNREAD or more, the socket is not read. `_limit`
    is that of a greeting until the first frame came, on the serving side."""

    def __init__(
        self,
        largest: int,
        opened: Callable[[Wire], None] | None = None,
        closed: Callable[[Wire], None] = lambda wire: None,
        *,
        bounds: PeerBounds = USUAL,
        endings: Endings | None = None,
    ) -> None:
        self.over = False
        self._largest = largest
        self._limit = largest if opened is None else min(largest, LONGEST_GREETING)
        self._opened = opened
        self._closed = closed
        self._bounds = bounds
        self._endings = endings
        self._handled = 0  # frames that came whole
        self._written = 0  # bytes, sent or not
        self._frame_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[tuple[int, bytes]] = deque()
        self._unread = 0
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    # ---- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT)
        if self._opened is not None:
            self._opened(self)

    def data_received(self, data: bytes) -> None:
        buffer, start, size = self._buffer, 0, _HEADER.size
        buffer += data
        while len(buffer) - start >= size:
            length, kind = _HEADER.unpack_from(buffer, start)
            if length > self._limit or kind > STATUS:
                self.close()  # it speaks another protocol, such as HTTP/2
                return
            if len(buffer) - start < size + length:
                break
            start += size
            self._frames.append((kind, bytes(buffer[start : start + length])))
            self._unread += size + length
            start += length
            self._handled += 1
            self._limit = self._largest
        del buffer[:start]
        if buffer and self._frame_timer is None:
            self._expect(self._handled)
        if self._unread >= UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._look()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over = True
        for timer in (self._frame_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._closed(self)
        self._writable.set()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # ---- peers that take too long

    def _expect(self, handled: int) -> None:
        """Starts one timer for the frame that is begun now: most frames are whole with the next bytes, and need none
        each. While nobody reads the frames that came, the socket is not read, and the frame's end may be on its way."""

        def look() -> None:
            self._frame_timer = None
            if not self._buffer or self.over:
                return
            if self._handled == handled and self._unread < UNREAD:
                self._give_up(FRAME, f"a frame was begun and not ended within {self._bounds.frame:g} s")
            else:
                self._expect(self._handled)

        self._frame_timer = asyncio.get_running_loop().call_later(self._bounds.frame, look)

    def _look(self) -> None:
        """Starts the timer within which the other side must read some of the bytes that wait."""
        gone = self._written - self.unsent

        def look() -> None:
            if self._written - self.unsent > gone:
                self._look()
            elif self.unsent:
                self._give_up(UNREAD_REPLIES, f"{self.unsent} bytes were not read for {self._bounds.stalled:g} s")

        if self._stall_timer is not None:
            self._stall_timer.cancel()
        self._stall_timer = asyncio.get_running_loop().call_later(self._bounds.stalled, look)

    def _give_up(self, kind: str, why: str) -> None:
        if self._endings is not None:
            self._endings.note(kind, f"a connection was ended: {why}")
        self.abort()

    # ---- called by streams

    @property
    def peer(self) -> int | None:
        """The id of the user at the other end; None: the socket does not say."""
        return None if self._transport is None else peer_user(self._transport.get_extra_info("socket"))

    @property
    def unsent(self) -> int:
        """Number of bytes that were written and are still here."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    async def read(self) -> tuple[int, bytes] | None:
        """Returns the next frame; None: the connection is over and all of it was read. One reader at a time."""
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
            frame = _HEADER.pack(len(body), kind) + body
            self._written += len(frame)
            self._transport.write(frame)

    async def room(self) -> None:
        """Waits until more may be written. Of many that wait only as many go on as there is room for."""
        while not self._writable.is_set():
            await self._writable.wait()

    async def sent(self) -> None:
        """Waits until more may be written, and for one turn of the loop, whose items may share the next frame."""
        await asyncio.sleep(0)
        await self._writable.wait()

    def close(self) -> None:
        """Ends the connection once all bytes that were written are sent, if the other side reads them."""
        if not self.over and self.unsent:
            self._look()
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
