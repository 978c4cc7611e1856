"""The wire that can be broken breaks as asked, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tailrace.bench.faults.proxy import DOWN, UP, FaultProxy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that notes each line and answers it in capitals."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.news = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.heard.append(line)
                self.news.set()
                writer.write(line.upper())
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def hears(self, line: bytes) -> None:
        while line not in self.heard:
            self.news.clear()
            await self.news.wait()

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    server = Echo()
    yield server
    server.stop()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[FaultProxy]:
    wire = FaultProxy(await echo.start())
    await wire.start()
    yield wire
    await wire.stop()


async def dial(proxy: FaultProxy) -> Streams:
    host, _, port = proxy.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def said(streams: Streams, line: bytes) -> bytes:
    """Sends a line and returns its answer; empty when the connection ended in order. Raises ConnectionResetError."""
    reader, writer = streams
    writer.write(line)
    return await reader.readline()


async def broken(streams: Streams) -> bool:
    """Whether the connection ends, in whichever way."""
    try:
        return await streams[0].read(1) == b""
    except ConnectionError:
        return True
    finally:
        streams[1].transport.abort()


async def test_a_whole_wire_passes_everything_and_ends_in_order(proxy: FaultProxy) -> None:
    streams = await dial(proxy)
    assert await said(streams, b"hello\n") == b"HELLO\n"
    assert (proxy.connections, proxy.passed) == (1, 12)
    streams[1].write_eof()
    assert await streams[0].read() == b""
    streams[1].close()


async def test_a_delay_keeps_the_order(proxy: FaultProxy) -> None:
    streams = await dial(proxy)
    proxy.delay(0.05)
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await said(streams, b"a\n") == b"A\n"
    assert loop.time() - began >= 0.1
    proxy.heal()
    assert await said(streams, b"b\n") == b"B\n"
    streams[1].close()


async def test_a_reset_ends_what_is_open_and_lets_new_ones_in(proxy: FaultProxy) -> None:
    streams = await dial(proxy)
    assert await said(streams, b"a\n") == b"A\n"
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await streams[0].readline()
    streams[1].close()
    again = await dial(proxy)
    assert await said(again, b"b\n") == b"B\n"
    again[1].close()


async def test_while_it_refuses_nobody_gets_through(proxy: FaultProxy, echo: Echo) -> None:
    proxy.refuse()
    streams = await dial(proxy)
    streams[1].write(b"a\n")
    assert await broken(streams) and echo.heard == []
    proxy.heal()
    again = await dial(proxy)
    assert await said(again, b"b\n") == b"B\n"
    again[1].close()


async def test_half_open_is_silence_and_what_was_held_comes_late(proxy: FaultProxy, echo: Echo) -> None:
    streams = await dial(proxy)
    assert await said(streams, b"a\n") == b"A\n"
    proxy.hold((DOWN,))
    streams[1].write(b"b\n")
    await echo.hears(b"b\n")  # the request went through
    answer = asyncio.create_task(streams[0].readline())
    await asyncio.sleep(0)
    assert not answer.done() and proxy.connections == 1
    proxy.heal()
    assert await answer == b"B\n"
    streams[1].close()


async def test_a_lost_reply_ends_in_a_reset_and_nothing_follows_it(proxy: FaultProxy, echo: Echo) -> None:
    streams = await dial(proxy)
    proxy.drop((DOWN,))
    streams[1].write(b"a\n")
    await echo.hears(b"a\n")
    await proxy.swallowed.wait()
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        await streams[0].readline()
    streams[1].close()


async def test_a_lost_request_never_arrives(proxy: FaultProxy, echo: Echo) -> None:
    streams = await dial(proxy)
    assert await said(streams, b"a\n") == b"A\n"
    proxy.drop((UP,))
    streams[1].write(b"b\n")
    await proxy.swallowed.wait()
    proxy.heal()
    assert await broken(streams) and echo.heard == [b"a\n"]


async def test_truncation_passes_half_and_ends(proxy: FaultProxy, echo: Echo) -> None:
    streams = await dial(proxy)
    assert await said(streams, b"a\n") == b"A\n"
    proxy.truncate()
    streams[1].write(b"a long request that is cut\n")
    assert await broken(streams)
    assert echo.heard == [b"a\n"] or not echo.heard[-1].endswith(b"cut\n")


async def test_a_server_that_is_away_looks_away(proxy: FaultProxy, echo: Echo) -> None:
    echo.stop()
    streams = await dial(proxy)
    assert await broken(streams)
