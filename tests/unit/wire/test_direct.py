"""Streams over plain sockets, beside the laws of all streams (`test_session_streams.py`): a connection that is no
session ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from google.protobuf.wrappers_pb2 import BytesValue

from tailrace.model.errors import AlreadyInUse, ConfigError
from tailrace.wire.bounds import Endings, PeerBounds
from tailrace.wire.carriers import dial_streams, serve_streams
from tailrace.wire.channel import dial, dial_blocking
from tailrace.wire.direct import SCHEME
from tailrace.wire.direct_frames import UNREAD, UNSENT
from tailrace.wire.stream import Stream, StreamMethod

TAKE = StreamMethod("/test.Service/Take", BytesValue, BytesValue)


async def take(stream: Stream) -> None:
    """Receives until there is no more."""
    while await stream.receive() is not None:
        pass


@pytest.fixture
async def listening() -> AsyncIterator[int]:
    """The port of a server."""
    server, address = await serve_streams(f"{SCHEME}127.0.0.1:0", {TAKE: take})
    yield int(address.rpartition(":")[2])
    await server.stop(None)


async def test_a_megabyte_waits_unread_and_another_unsent_before_a_sender_waits() -> None:
    # Given a handler that receives nothing
    async def nothing(stream: Stream) -> None:
        await asyncio.Event().wait()

    server, address = await serve_streams(f"{SCHEME}127.0.0.1:0", {TAKE: nothing})
    channel = dial_streams(address)
    stream, piece, sent = channel.open(TAKE), BytesValue(value=bytes(1 << 16)), 0
    with pytest.raises(TimeoutError):
        for _ in range(100 * (UNREAD + UNSENT) >> 16):
            async with asyncio.timeout(1):
                await stream.send(piece)
            sent += 1
    assert sent << 16 >= UNREAD
    await channel.close()
    await server.stop(None)


@pytest.mark.parametrize("dialed", [dial, dial_blocking])
async def test_what_is_no_session_is_asked_by_grpc(dialed: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match="carries sessions only"):
        dialed("direct:127.0.0.1:8791")


@pytest.mark.parametrize(
    "said",
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x00\x00\x02\x00hi", b"\xff\xff\xff\xff\x01", b"\x00\x00\x00\x00\x07"],
    ids=["http2", "no greeting", "too large", "no such kind"],
)
async def test_who_speaks_of_something_else_is_shown_out(listening: int, said: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listening)
    writer.write(said)
    assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()


async def test_who_says_nothing_is_shown_out() -> None:
    endings, bounds = Endings(), PeerBounds(greeting=0.01)
    server, address = await serve_streams(f"{SCHEME}127.0.0.1:0", {TAKE: take}, bounds, endings)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    assert await asyncio.wait_for(reader.read(), 20) == b""
    assert endings.counts == {"greeting": 1}
    writer.close()
    await server.stop(None)


async def test_it_listens_on_loopback_only_and_says_when_a_port_is_taken(listening: int) -> None:
    with pytest.raises(ConfigError, match="only loopback"):
        await serve_streams(f"{SCHEME}0.0.0.0:0", {})
    with pytest.raises(AlreadyInUse, match=r"taken.* by `direct_listen` in scheduler.yaml"):
        await serve_streams(f"{SCHEME}127.0.0.1:{listening}", {}, chosen_by="`direct_listen` in scheduler.yaml")
