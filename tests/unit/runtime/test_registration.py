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
