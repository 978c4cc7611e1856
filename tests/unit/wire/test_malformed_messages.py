"""Bytes that are no message of their method are refused in words that say so, over every carrier."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from scenes.scheduler_place import SIZES

from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.channel import dial

NONSENSE = b"\xff\xff\xff"
PLACE = "/tailrace.v1.Scheduler/"


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    scheduler = SchedulerServer(SchedulerConfig(listen="127.0.0.1:0"), SIZES)
    await scheduler.start()
    async with dial(scheduler.address) as channel:
        yield channel
    await scheduler.stop()


async def one(channel: Any, method: str) -> None:
    await channel.unary_unary(PLACE + method, request_serializer=bytes, response_deserializer=bytes)(NONSENSE)


async def replies(channel: Any, method: str) -> None:
    async for _ in channel.unary_stream(PLACE + method, request_serializer=bytes, response_deserializer=bytes)(
        NONSENSE
    ):
        pass


async def session(channel: Any, method: str) -> None:
    stream = channel.stream_stream(PLACE + method, request_serializer=bytes, response_deserializer=bytes)()
    await stream.write(NONSENSE)
    async for _ in stream:
        pass


@pytest.mark.parametrize(("call", "method"), [(one, "Explain"), (replies, "Record"), (session, "AttachTailer")])
async def test_they_are_the_callers_mistake(
    channel: grpc.aio.Channel, caplog: pytest.LogCaptureFixture, call: Any, method: str
) -> None:
    # Given a scheduler that is asked in bytes that are no message
    caplog.set_level(logging.WARNING)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(channel, method)
    # Then the caller is told so, as of any request that is wrong
    said = f"bytes that cannot be read: {PLACE}{method}: "
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert (refused.value.details() or "").startswith(said)
    assert ("tailrace-error", "InvalidRequest") in [
        (key, value) for key, value in refused.value.trailing_metadata() or ()
    ]
    # And the log has a line of it, without a traceback
    [record] = caplog.records
    assert record.getMessage().startswith(said) and not record.exc_info
