"""Calls to stores behind a server: only the protocols' methods can be called, with their arguments."""

from __future__ import annotations

from typing import Any

import grpc
import msgspec
import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.stores.log.log import Record
from tailrace.stores.remote import (
    RemoteCheckpoints,
    RemoteControl,
    RemoteDeadLetters,
    RemoteDrops,
    RemoteInventory,
    RemoteLedger,
    RemoteLog,
    RemoteOwnership,
    RemoteQueue,
    RemoteReplays,
    RemoteResults,
    RemoteSegments,
    RemoteTroubles,
)
from tailrace.stores.server import PROTOCOLS
from tailrace.wire.channel import dial
from tailrace.wire.stores import methods
from tailrace.wire.v1 import stores_pb2 as pb
from tailrace.wire.v1.stores_pb2_grpc import StoresStub


async def call(address: str, store: str, method: str, arguments: Any) -> pb.StoreResult:
    async with dial(address) as channel:
        stub: Any = StoresStub(channel)  # type: ignore[no-untyped-call]
        encoded = arguments if isinstance(arguments, bytes) else msgspec.msgpack.encode(arguments)
        answer: pb.StoreResult = await stub.Call(pb.StoreCall(store=store, method=method, arguments=encoded))
        return answer


@pytest.mark.parametrize(
    ("store", "method"),
    [
        ("secrets", "get"),
        ("queue", "nothing"),
        ("queue", ""),
        ("queue", "open"),  # the engine's, not the protocol's
        ("queue", "sweep"),
        ("queue", "_now"),
        ("queue", "__init__"),
        ("log", "lease"),  # another protocol's
    ],
)
async def test_what_no_protocol_names_cannot_be_called(address: str, store: str, method: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(address, store, method, [])

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"{store}.{method} is not served here" in (raised.value.details() or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["s"],  # too few
        ["s", 0, [[b"x"]], "too many"],
        ["s", "0", [[b"x"]]],  # text for a number
        ["s", 0, [["text for bytes"]]],
        {"stream": "s"},
        b"",
        b"\xc1 is no MessagePack",
    ],
)
async def test_arguments_that_are_not_the_protocols_are_refused(address: str, arguments: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(address, "log", "append", arguments)

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert (raised.value.details() or "").startswith("log.append: ")


async def test_a_call_that_fits_into_no_message_is_refused_before_it_is_sent(address: str) -> None:
    async with RemoteLog(address) as log:
        with pytest.raises(InvalidRequest, match=r"log\.append: .* send less at once"):
            await log.append("s", 0, [Record(bytes(1 << 20))] * 16)

        assert await log.streams() == []


@pytest.mark.parametrize(
    ("store", "client"),
    [
        ("queue", RemoteQueue),
        ("log", RemoteLog),
        ("delay_log", RemoteLog),
        ("delay_queue", RemoteQueue),
        ("checkpoints", RemoteCheckpoints),
        ("dead_letters", RemoteDeadLetters),
        ("drops", RemoteDrops),
        ("results", RemoteResults),
        ("control", RemoteControl),
        ("inventory", RemoteInventory),
        ("ownership", RemoteOwnership),
        ("ledger", RemoteLedger),
        ("segments", RemoteSegments),
        ("replays", RemoteReplays),
        ("troubles", RemoteTroubles),
    ],
)
def test_a_client_has_every_method_of_its_protocol(store: str, client: type[Any]) -> None:
    assert set(methods(PROTOCOLS[store])) <= set(vars(client))
