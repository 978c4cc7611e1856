"""Servers listen on loopback only, a taken port is said so, and errors cross with their class."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from tailrace.bench.faults.proxy import FaultProxy
from tailrace.model.errors import (
    AlreadyInUse,
    ConfigError,
    Conflict,
    InvalidPayload,
    InvalidRequest,
    NotConnected,
    Overloaded,
    SessionLost,
    StaleFence,
    StoreFull,
    TailraceError,
    Unavailable,
    UnknownFunction,
)
from tailrace.wire.channel import MAX_MESSAGE, abort, dial, dial_blocking, error_of, serve

METHOD = "/test.Service/Call"
Raise = Callable[[bytes], bytes]


def answering(answer: Raise) -> Callable[[grpc.aio.Server], None]:
    """A service of raw bytes; an error of the error tree that `answer` raises goes to the caller."""

    async def call(request: bytes, context: Any) -> bytes:
        try:
            return answer(request)
        except TailraceError as error:
            await abort(context, error)
            raise

    handler = grpc.method_handlers_generic_handler("test.Service", {"Call": grpc.unary_unary_rpc_method_handler(call)})
    return lambda server: server.add_generic_rpc_handlers((handler,))


async def asked(address: str, request: bytes = b"") -> bytes:
    """Calls once. Raises the error that `error_of` makes of the answer."""
    async with dial(address) as channel:
        try:
            answer: bytes = await channel.unary_unary(METHOD)(request, timeout=5)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address) from None
        return answer


@pytest.fixture
async def failing() -> AsyncIterator[Callable[[TailraceError], Any]]:
    """Raises an error on the other side and returns the error that arrives here."""
    raised: list[TailraceError] = []

    def answer(_: bytes) -> bytes:
        raise raised[-1]

    server, address = await serve("127.0.0.1:0", [answering(answer)])

    async def crossing(error: TailraceError) -> BaseException:
        raised.append(error)
        with pytest.raises(TailraceError) as caught:
            await asked(address)
        return caught.value

    yield crossing
    await server.stop(None)


@pytest.fixture
async def far() -> AsyncIterator[str]:
    """The address of a service behind a wire on which each packet takes a fifth of a second."""
    server, address = await serve("127.0.0.1:0", [answering(lambda request: request + b"!")])
    wire = FaultProxy(address)
    await wire.start()
    wire.delay(0.2)
    yield wire.address
    await wire.stop()
    await server.stop(None)


async def test_a_part_far_away_is_reached_by_the_first_call(far: str) -> None:
    # Given a part far away, when it is called once, as an operator's command does, then it is not said to be away
    assert await asked(far, b"well") == b"well!"
    with dial_blocking(far) as channel:
        assert await asyncio.to_thread(channel.unary_unary(METHOD), b"well", timeout=5) == b"well!"


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "10.0.0.1:8786", "example.org:80"])
async def test_listening_beyond_loopback_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="only loopback") as refused:
        await serve(address, [])
    assert address in str(refused.value)


@pytest.mark.parametrize("address", ["", "8786", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", ":1"])
async def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(ConfigError, match=r"host:port, such as"):
        await serve(address, [])


async def test_a_taken_port_is_named_with_what_to_do() -> None:
    server, address = await serve("127.0.0.1:0", [])
    with pytest.raises(AlreadyInUse, match="taken") as refused:
        await serve(address, [])
    assert address in str(refused.value)
    with pytest.raises(AlreadyInUse, match=r"or choose another by `listen` in delay.yaml"):
        await serve(address, [], chosen_by="`listen` in delay.yaml")
    await server.stop(None)


async def test_a_port_taken_by_something_else_is_refused_too() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(AlreadyInUse):
            await serve(f"127.0.0.1:{other.getsockname()[1]}", [])


async def test_any_free_port_is_told() -> None:
    server, address = await serve("localhost:0", [answering(lambda request: request[::-1])])
    assert address.startswith("localhost:")
    assert not address.endswith(":0")
    assert await asked(address, b"abc") == b"cba"
    await server.stop(None)


@pytest.mark.parametrize(
    "kind",
    [
        UnknownFunction,
        InvalidPayload,
        InvalidRequest,
        Conflict,
        StoreFull,
        StaleFence,
        NotConnected,
        Unavailable,
    ],
)
async def test_an_error_crosses_with_its_class_and_its_words(
    failing: Callable[[TailraceError], Any], kind: type[TailraceError]
) -> None:
    caught = await failing(kind("the words — with è"))
    assert type(caught) is kind
    assert str(caught) == "the words — with è"


async def test_an_overload_says_when_to_come_back(failing: Callable[[TailraceError], Any]) -> None:
    caught = await failing(Overloaded("full", 2.25))
    assert isinstance(caught, Overloaded)
    assert (str(caught), caught.retry_after) == ("full", 2.25)


async def test_an_error_without_a_status_of_its_own_is_still_one_of_the_tree(
    failing: Callable[[TailraceError], Any],
) -> None:
    caught = await failing(SessionLost("gone"))
    assert type(caught) is TailraceError
    assert "gone" in str(caught)


async def test_nobody_there_is_unavailable_and_the_address_is_named() -> None:
    with socket.socket() as bound:  # bound, but nobody listens
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(NotConnected, match="is it running") as caught:
            await asked(address)
    assert address in str(caught.value)


@pytest.mark.parametrize("status", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"])
def test_a_server_that_went_away_during_a_call_is_not_connected(status: str) -> None:
    gone = SimpleNamespace(
        code=lambda: grpc.StatusCode[status], details=lambda: "stopped", trailing_metadata=lambda: None
    )
    assert type(error_of(gone, "127.0.0.1:1")) is NotConnected


async def test_a_message_beyond_the_bound_is_refused_and_the_next_goes_through() -> None:
    server, address = await serve("127.0.0.1:0", [answering(lambda request: str(len(request)).encode())])
    assert await asked(address, b"x" * (MAX_MESSAGE - 1024)) == str(MAX_MESSAGE - 1024).encode()
    with pytest.raises(TailraceError):
        await asked(address, b"x" * (MAX_MESSAGE + 1))
    assert await asked(address, b"x") == b"1"
    await server.stop(None)


async def test_blocking_calls_reach_the_same_server() -> None:
    server, address = await serve("127.0.0.1:0", [answering(lambda request: request)])

    def call() -> bytes:
        with dial_blocking(address) as channel:
            answer: bytes = channel.unary_unary(METHOD)(b"abc", timeout=5)
            return answer

    assert await asyncio.to_thread(call) == b"abc"
    await server.stop(None)


async def test_a_server_waits_for_the_next_call_of_all_its_methods_by_one_task() -> None:
    # Given a service of many methods, registered as generated code does it
    async def call(request: bytes, context: Any) -> bytes:
        return request

    methods = {f"Call{number}": grpc.unary_unary_rpc_method_handler(call) for number in range(30)}

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", methods),))
        server.add_registered_method_handlers("test.Service", methods)  # type: ignore[attr-defined]

    before = len(asyncio.all_tasks())
    server, address = await serve("127.0.0.1:0", [register])
    # When one is called
    async with dial(address) as channel:
        answer = await channel.unary_unary("/test.Service/Call7")(b"7", timeout=5)
    # Then it answers, and no method had a task of its own
    assert answer == b"7"
    assert len(asyncio.all_tasks()) - before < len(methods)
    await server.stop(None)
