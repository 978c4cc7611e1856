"""A worker's functions, announced to a gateway that does not have them yet."""

from __future__ import annotations

import asyncio
import logging

import grpc
import pytest

from tailrace.model.backoff import Pauses
from tailrace.model.errors import InvalidRequest, Unavailable
from tailrace.model.function_spec import FunctionSpec
from tailrace.runtime import registration
from tailrace.wire.statuses import status_of
from tailrace.wire.v1 import gateway_pb2 as pb
from tailrace.wire.v1 import gateway_pb2_grpc


async def test_each_new_reason_is_logged_and_a_refusal_is_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a gateway that is away, then refuses the functions twice for one reason, then takes them
    refused = InvalidRequest("charge: no such pool")
    answers = [Unavailable("away"), refused, refused]

    class Gateway(gateway_pb2_grpc.GatewayServicer):
        async def RegisterFunctions(self, request, context):
            if answers:
                await context.abort(*status_of(answers.pop(0)))
            return pb.RegisterFunctionsReply()

    monkeypatch.setattr(registration, "STORE", Pauses(0.001, 0.001))
    server = grpc.aio.server()
    gateway_pb2_grpc.add_GatewayServicer_to_server(Gateway(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    # When a worker registers
    async with asyncio.timeout(20):
        await registration.register(f"127.0.0.1:{port}", "w1", [FunctionSpec("charge")])
    await server.stop(None)
    # Then each reason was told once: what passes by itself as a warning, what somebody has to change as an error
    told = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == [logging.WARNING, logging.ERROR]
    assert "functions of worker w1 are not registered yet" in told[0][1]
    assert "charge: no such pool" in told[1][1]


async def test_a_gateway_is_told_why_functions_cannot_be_loaded_and_when_they_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a gateway that is away for the first report
    failing, told = ["tasks.py:1: SyntaxError"], asyncio.Queue[tuple[str, str, int]]()
    away = [Unavailable("away")]

    class Gateway:
        def __init__(self, address: str) -> None: ...

        async def __aenter__(self) -> Gateway:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def tell_failure(self, part: str, why: str, times: int) -> None:
            if away:
                raise away.pop()
            told.put_nowait((part, why, times))

    monkeypatch.setattr(registration, "GatewayClient", Gateway)
    monkeypatch.setattr(registration, "LOOK", 0.001)
    monkeypatch.setattr(registration, "NEXT_TRY", 0.001)
    telling = asyncio.create_task(registration.tell_failures("h:1", "w1", lambda: failing[0]))
    # When the functions of a worker cannot be loaded, then it is told
    assert await told.get() == ("worker w1", "tasks.py:1: SyntaxError", 0)
    # And when they can, that is told as well, once
    failing[0] = ""
    assert await told.get() == ("worker w1", "", 0)
    await asyncio.sleep(0.01)
    assert told.empty()
    telling.cancel()
