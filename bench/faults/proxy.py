"""A wire that can be broken: a TCP proxy on loopback between two parts, for delay, reset, silence, truncation and
replies that are lost after the request went through. It knows bytes, never frames.

After toxiproxy (Shopify), whose toxics these are; here they are methods, so that a test can await them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Collection

from ...model.address import parse_address

#: The two ways through the proxy: from the dialling part to the dialled one, and back.
UP = "up"
DOWN = "down"
BOTH = (UP, DOWN)

_CHUNK = 1 << 16


class _Link:
    """One connection: the two sockets' streams. `tainted`: bytes were dropped, so nothing may follow them."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.writers = (client, server)
        self.tainted = False

    def reset(self) -> None:
        """Ends both sides with a reset rather than an orderly end."""
        for writer in self.writers:
            reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection with RST."""
    end = writer.get_extra_info("socket")
    if end is not None:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class FaultProxy:
    """Listens on loopback and passes on to `target`. A Part; `address` is known after start.

    Every fault lasts until `heal`. Connections with dropped or cut bytes end in a reset then; bytes that were only held
    are passed on late, as TCP would. Connections made during a fault are under it too.
    """

    def __init__(self, target: str, listen: str = "127.0.0.1:0") -> None:
        self.target = target
        self.address = listen
        self.passed = 0  # bytes, for people
        self.swallowed = asyncio.Event()  # bytes were dropped since the last heal
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._delay = 0.0
        self._refusing = False
        self._dropping: frozenset[str] = frozenset()
        self._cutting = False
        self._flows = {direction: asyncio.Event() for direction in BOTH}
        for flow in self._flows.values():
            flow.set()

    async def start(self) -> None:
        """Begins to listen."""
        host, port = parse_address(self.address, lowest_port=0)
        self._server = await asyncio.start_server(self._accept, host, port)
        self.address = f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Ends every connection and stops listening."""
        if self._server is not None:
            self._server.close()
        self.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._links)

    # The faults.

    def delay(self, seconds: float) -> None:
        """Has each chunk of bytes arrive that much later, in order."""
        self._delay = seconds

    def reset(self) -> None:
        """Ends every open connection with a reset; new ones are made as usual."""
        for link in list(self._links):
            link.reset()

    def refuse(self) -> None:
        """Ends every connection, and resets new ones at once: as while a part is down."""
        self._refusing = True
        self.reset()

    def hold(self, directions: Collection[str] = BOTH) -> None:
        """Keeps the connections, but lets no byte arrive any more: half-open."""
        for direction in directions:
            self._flows[direction].clear()

    def drop(self, directions: Collection[str] = (DOWN,)) -> None:
        """Drops bytes; by default those of replies, so that requests go through, and nobody hears of their success."""
        self._dropping = frozenset(directions)

    def truncate(self) -> None:
        """Cuts the next chunk of each connection in half, and resets the connection."""
        self._cutting = True

    def heal(self) -> None:
        """Makes the wire whole again."""
        self._delay, self._refusing, self._dropping, self._cutting = 0.0, False, frozenset(), False
        self.swallowed.clear()
        for link in list(self._links):
            if link.tainted:
                link.reset()
        for flow in self._flows.values():
            flow.set()

    # The wire.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            if self._refusing:
                raise ConnectionRefusedError
            far_reader, far_writer = await asyncio.open_connection(*parse_address(self.target))
        except (OSError, asyncio.CancelledError):
            reset(writer)
            return
        link = _Link(writer, far_writer)
        self._links.add(link)
        ways = [
            asyncio.ensure_future(self._pass(link, reader, far_writer, UP)),
            asyncio.ensure_future(self._pass(link, far_reader, writer, DOWN)),
        ]
        try:
            await asyncio.wait(ways)
        except asyncio.CancelledError:
            pass  # stopped; asyncio's server would report it as an error
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._links.discard(link)
            for end in (writer, far_writer):
                end.close()

    async def _pass(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str
    ) -> None:
        """Passes bytes on in one direction of a connection, until it ends."""
        try:
            while data := await reader.read(_CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._flows[direction].wait()
                if direction in self._dropping or link.tainted:
                    link.tainted = True
                    self.swallowed.set()
                    continue
                if self._cutting:
                    writer.write(data[: len(data) // 2])
                    await writer.drain()
                    await asyncio.sleep(0)
                    link.reset()
                    return
                writer.write(data)
                self.passed += len(data)
                await writer.drain()
            await self._flows[direction].wait()
            if not link.tainted:
                writer.write_eof()
        except OSError:
            link.reset()
