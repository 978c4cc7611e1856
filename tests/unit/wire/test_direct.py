"""Streams over plain sockets: what a session needs of gRPC holds on them too, and what is no session is shown out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from tailrace.sdk.model.errors import AlreadyInUse, ConfigError, Overloaded
from tailrace.sdk.wire.bounds import Endings, PeerBounds
from tailrace.sdk.wire.channel import abort, dial, error_of, serve
from tailrace.sdk.wire.direct import SCHEME
from tailrace.sdk.wire.direct_frames import UNREAD, UNSENT

ECHO = "/test.Service/Echo"
Handler = Callable[[Any, Any], Any]
Open = Callable[[], Any]


def streaming(handle: Handler) -> Callable[[Any], None]:
    """A service with one method of streams of bytes, and one that takes and answers one message."""

    async def once(request: bytes, context: Any) -> bytes:
        return request

    methods = {
        "Echo": grpc.stream_stream_rpc_method_handler(handle, request_deserializer=bytes, response_serializer=bytes),
        "Once": grpc.unary_unary_rpc_method_handler(once),
    }
    return lambda server: server.add_registered_method_handlers("test.Service", methods)


async def echo(_: Any, context: Any) -> None:
    """Answers each message with itself, until there are no more."""
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)


@pytest.fixture
async def serving() -> AsyncIterator[Callable[[Handler], Any]]:
    """Serves a handler, and returns what calls its method."""
    open_now: list[Any] = []

    async def served(handle: Handler, path: str = ECHO) -> Open:
        server, address = await serve(f"{SCHEME}127.0.0.1:0", [streaming(handle)])
        channel = dial(address)
        open_now.extend([(channel.close, ()), (server.stop, (None,))])
        method = channel.stream_stream(path, request_serializer=bytes, response_deserializer=bytes)
        opened: Open = method
        return opened

    yield served
    for end, arguments in open_now:
        await end(*arguments)


@pytest.fixture
async def listening() -> AsyncIterator[int]:
    """The port of a server that echoes."""
    server, address = await serve(f"{SCHEME}127.0.0.1:0", [streaming(echo)])
    yield int(address.rpartition(":")[2])
    await server.stop(None)


@pytest.mark.parametrize("size", [0, 1, 70_000, 4 << 20])
async def test_messages_of_any_size_arrive_whole_and_in_order(serving: Any, size: int) -> None:
    call = (await serving(echo))()
    messages = [bytes([number]) * size for number in range(3)]
    for message in messages:
        await call.write(message)
        assert await call.read() == message


async def test_an_end_and_an_error_of_the_serving_side_cross_as_over_grpc(serving: Any) -> None:
    # Given a handler that answers once and ends, and one that refuses
    async def once(_: Any, context: Any) -> None:
        await context.write(await context.read())

    async def full(_: Any, context: Any) -> None:
        await abort(context, Overloaded("too many", 2.5))

    call, refused = (await serving(once))(), (await serving(full))()
    await call.write(b"x")
    # Then what was said before the end is read first, and the end is an end
    assert await call.read() == b"x"
    assert await call.read() is grpc.aio.EOF
    with pytest.raises(asyncio.InvalidStateError):
        await call.write(b"y")
    # And an error has its class
    await refused.write(b"x")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await refused.read()
    error = error_of(caught.value, "there")
    assert isinstance(error, Overloaded)
    assert (str(error), error.retry_after) == ("too many", 2.5)


async def test_a_handler_that_fails_says_so_to_both_sides(serving: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(_: Any, context: Any) -> None:
        raise RuntimeError("this cannot be right")

    call = (await serving(fails))()
    await call.write(b"x")
    with pytest.raises(grpc.aio.AioRpcError, match="this cannot be right"):
        await call.read()
    assert "a session's connection failed" in caplog.text


async def test_an_answer_to_somebody_who_is_gone_is_no_failure(serving: Any, caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    # Given a handler that answers when the other side has given up
    async def late(_: Any, context: Any) -> None:
        try:
            while await context.read() is not grpc.aio.EOF:
                pass
            await context.write(b"welcome")
        finally:
            ended.set()

    call = (await serving(late))()
    await call.write(b"x")
    # When it does, then nobody is told of an error
    assert call.cancel()
    await asyncio.wait_for(ended.wait(), 20)
    assert "a session's connection failed" not in caplog.text


async def test_who_reads_slowly_is_not_run_over(serving: Any) -> None:
    # Given a handler that reads nothing before it may
    may = asyncio.Event()

    async def slow(_: Any, context: Any) -> None:
        await may.wait()
        await echo(_, context)

    call, piece, sent = (await serving(slow))(), bytes(1 << 16), 0
    # When more is written than both sides and the sockets between them keep, then the writer waits
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(20):
            for _ in range(100 * (UNREAD + UNSENT) // len(piece)):
                async with asyncio.timeout(1):
                    await call.write(piece)
                sent += 1
    assert sent * len(piece) >= UNREAD
    # And nothing of it is lost, nor of what was being written
    may.set()
    for _ in range(sent + 1):
        assert await call.read() == piece


async def test_a_call_that_is_given_up_ends_on_the_other_side(serving: Any) -> None:
    ended = asyncio.Event()

    async def listens(_: Any, context: Any) -> None:
        await echo(_, context)
        ended.set()

    call = (await serving(listens))()
    await call.write(b"x")
    await call.read()
    assert call.cancel()
    assert not call.cancel()
    await asyncio.wait_for(ended.wait(), 20)


async def test_a_method_that_is_not_there_is_refused(serving: Any) -> None:
    for path in ("/test.Service/Once", "/test.Service/Nothing"):
        call = (await serving(echo, path))()
        await call.write(b"x")
        with pytest.raises(grpc.aio.AioRpcError, match="no method of streams here"):
            await call.read()


async def test_what_is_no_session_is_asked_by_grpc(listening: int) -> None:
    async with dial(f"{SCHEME}127.0.0.1:{listening}") as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="sessions only"):
            await channel.unary_unary("/test.Service/Once")(b"x", timeout=5)


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
    endings = Endings()
    server, address = await serve(f"{SCHEME}127.0.0.1:0", [streaming(echo)], PeerBounds(greeting=0.01), endings)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    assert await asyncio.wait_for(reader.read(), 20) == b""
    assert endings.counts == {"greeting": 1}
    writer.close()
    await server.stop(None)


async def test_nobody_there_is_unavailable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        async with dial(f"{SCHEME}127.0.0.1:{held.getsockname()[1]}") as channel:
            call: Any = channel.stream_stream(ECHO, request_serializer=bytes, response_deserializer=bytes)()
            with pytest.raises(grpc.aio.AioRpcError, match="failed to connect") as caught:
                await call.write(b"x")
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_it_listens_on_loopback_only_and_says_when_a_port_is_taken(listening: int) -> None:
    with pytest.raises(ConfigError, match="only loopback"):
        await serve(f"{SCHEME}0.0.0.0:0", [])
    with pytest.raises(AlreadyInUse, match="taken"):
        await serve(f"{SCHEME}127.0.0.1:{listening}", [])
