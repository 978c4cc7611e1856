"""Laws of streams that sessions rely on: each law over gRPC and over a plain socket."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue

from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded, TailraceError
from tailrace.wire.carriers import dial_streams, serve_streams
from tailrace.wire.channel import serve
from tailrace.wire.direct import SCHEME
from tailrace.wire.grpc_stream import serve_stream
from tailrace.wire.stream import DialedStream, Listener, Stream, StreamClosed, StreamHandler, StreamMethod

ECHO = StreamMethod("/test.Service/Echo", BytesValue, BytesValue)
Open = Callable[[], DialedStream]
Serving = Callable[..., Awaitable[Open]]


def message(value: bytes) -> BytesValue:
    return BytesValue(value=value)


async def echo(stream: Stream) -> None:
    """Answers each message with itself, until there are no more."""
    while (said := await stream.receive()) is not None:
        await stream.send(said)


async def listen(scheme: str, handle: StreamHandler) -> tuple[Listener, str]:
    """Serves ECHO at an address with this scheme, by the carrier for which it stands."""
    if scheme:
        return await serve_streams(f"{scheme}127.0.0.1:0", {ECHO: handle})

    async def method(_: object, context: object) -> None:
        await serve_stream(handle, context)

    handler = grpc.stream_stream_rpc_method_handler(method, BytesValue.FromString, BytesValue.SerializeToString)
    handlers = grpc.method_handlers_generic_handler("test.Service", {"Echo": handler})
    return await serve("127.0.0.1:0", [lambda server: server.add_generic_rpc_handlers((handlers,))])


@pytest.fixture(params=["", SCHEME], ids=["grpc", "direct"])
def scheme(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def serving(scheme: str) -> AsyncIterator[Serving]:
    """Serves a handler, and returns a function that opens streams to it."""
    open_now: list[Callable[[], Awaitable[None]]] = []

    async def served(handle: StreamHandler, method: StreamMethod = ECHO) -> Open:
        server, address = await listen(scheme, handle)
        channel = dial_streams(address)
        open_now.extend([channel.close, lambda: server.stop(None)])
        return lambda: channel.open(method)

    yield served
    for end in open_now:
        await end()


@pytest.mark.parametrize("size", [0, 1, 70_000, 4 << 20])
async def test_messages_of_any_size_arrive_whole_and_in_order(serving: Serving, size: int) -> None:
    stream = (await serving(echo))()
    messages = [message(bytes([number]) * size) for number in range(3)]
    for each in messages:
        await stream.send(each)
        assert await stream.receive() == each


async def test_what_was_said_before_the_end_is_received_first_and_then_nothing_can_be_sent(serving: Serving) -> None:
    # Given a handler that answers once and ends
    async def once(stream: Stream) -> None:
        said = await stream.receive()
        await stream.send(said)

    stream = (await serving(once))()
    await stream.send(message(b"x"))
    # Then what was said before the end comes first, and the end is one
    assert await stream.receive() == message(b"x")
    assert await stream.receive() is None
    with pytest.raises(StreamClosed):
        await stream.send(message(b"y"))


@pytest.mark.parametrize("error", [Overloaded("too many", 2.5), InvalidRequest("not like this")])
async def test_an_error_of_the_serving_side_crosses_with_its_class(serving: Serving, error: TailraceError) -> None:
    async def refuses(stream: Stream) -> None:
        await stream.receive()
        raise error

    stream = (await serving(refuses))()
    await stream.send(message(b"x"))
    with pytest.raises(StreamClosed, match=str(error)) as closed:
        await stream.receive()
    crossed = closed.value.error
    assert (type(crossed), str(crossed)) == (type(error), str(error))
    assert getattr(crossed, "retry_after", None) == getattr(error, "retry_after", None)


async def test_a_handler_that_fails_says_so_to_both_sides(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(stream: Stream) -> None:
        raise RuntimeError("this cannot be right")

    stream = (await serving(fails))()
    with pytest.raises(StreamClosed, match="this cannot be right") as closed:
        await stream.send(message(b"x"))
        await stream.receive()
    assert type(closed.value.error) is TailraceError
    assert "this cannot be right" in caplog.text
    caplog.clear()


async def test_an_answer_to_somebody_who_is_gone_is_no_failure(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    # Given a handler that answers when the other side has given up
    async def late(stream: Stream) -> None:
        began.set()
        try:
            while await stream.receive() is not None:
                pass
            await stream.send(message(b"welcome"))
        finally:
            ended.set()

    stream = (await serving(late))()
    await stream.send(message(b"x"))
    await asyncio.wait_for(began.wait(), 20)
    # When it does, then nobody is told of an error
    stream.cancel()
    await asyncio.wait_for(ended.wait(), 20)
    assert not caplog.records


async def test_a_stream_that_is_given_up_ends_on_both_sides(serving: Serving) -> None:
    ended = asyncio.Event()

    async def listens(stream: Stream) -> None:
        try:
            await echo(stream)
        finally:
            ended.set()

    stream = (await serving(listens))()
    await stream.send(message(b"x"))
    await stream.receive()
    stream.cancel()
    stream.cancel()
    await asyncio.wait_for(ended.wait(), 20)
    with pytest.raises(StreamClosed):
        await stream.receive()
    with pytest.raises(StreamClosed):
        await stream.send(message(b"y"))


async def test_who_receives_nothing_is_not_run_over(serving: Serving, scheme: str) -> None:
    # Given a handler that receives nothing before it may
    may = asyncio.Event()

    async def slow(stream: Stream) -> None:
        await may.wait()
        await echo(stream)

    stream, piece, sent = (await serving(slow))(), message(bytes(1 << 16)), 0

    async def write() -> None:
        nonlocal sent
        for _ in range(1000):
            await stream.send(piece)
            sent += 1

    writing = asyncio.create_task(write())
    # When more is sent than both sides and the sockets between them keep, then the sender waits
    before = -1
    async with asyncio.timeout(20):
        while sent > before:
            before = sent
            await asyncio.sleep(0.5)
    # (gRPC takes less than one piece before the handler asks for it)
    assert (sent > 0 or not scheme) and sent < 1000
    # And nothing of it is lost
    may.set()
    for _ in range(1000):
        assert await stream.receive() == piece
    await writing


async def test_a_method_that_is_not_there_is_refused(serving: Serving) -> None:
    stream = (await serving(echo, ECHO._replace(path="/test.Service/Nothing")))()
    with pytest.raises(StreamClosed) as closed:
        await stream.send(message(b"x"))
        await stream.receive()
    assert type(closed.value.error) is TailraceError


async def test_a_cancelled_wait_is_the_waiters_own(serving: Serving) -> None:
    stream = (await serving(echo))()
    await stream.send(message(b"x"))
    await stream.receive()
    waiting = asyncio.create_task(stream.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_server_that_stops_ends_its_streams(scheme: str) -> None:
    server, address = await listen(scheme, echo)
    channel = dial_streams(address)
    stream = channel.open(ECHO)
    await stream.send(message(b"x"))
    await stream.receive()
    await server.stop(None)
    with pytest.raises(StreamClosed) as closed:
        await asyncio.wait_for(stream.receive(), 20)
    assert isinstance(closed.value.error, NotConnected)
    await channel.close()


async def test_nobody_there_is_not_connected(scheme: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{held.getsockname()[1]}"
        channel = dial_streams(address)
        stream = channel.open(ECHO)
        with pytest.raises(StreamClosed, match="failed to connect") as closed:
            await stream.send(message(b"x"))
        await channel.close()
    assert isinstance(closed.value.error, NotConnected)
    assert address in str(closed.value.error)


async def test_who_sends_into_a_stream_that_was_just_refused_is_told_why(serving: Serving) -> None:
    # Given a stream whose end is on the way
    refused = asyncio.Event()

    async def refuse(stream: Stream) -> None:
        await stream.receive()
        refused.set()
        raise InvalidRequest("not you")

    stream = (await serving(refuse))()
    await stream.send(message(b"a"))
    await refused.wait()
    time.sleep(0.1)  # noqa: ASYNC251  it comes while this event loop does something else
    # When something is sent before the end was read
    with pytest.raises(StreamClosed) as closed:
        async with asyncio.timeout(10):
            while True:
                await stream.send(message(b"b"))
                await asyncio.sleep(0)
    # Then the sender is told why, or that it is over
    error = closed.value.error
    assert error is None or (type(error), str(error)[-7:]) == (InvalidRequest, "not you"), repr(error)
