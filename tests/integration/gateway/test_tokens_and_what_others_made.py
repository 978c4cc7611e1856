"""Tokens against objects that others made: an object's name or its id is no way around the rights to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from scenes.token_door import Door

from tailrace.model.errors import Conflict, InvalidRequest
from tailrace.model.schedule import Schedule
from tailrace.sdk.async_client import AsyncClient
from tailrace.stores.schedules.sqlite import SCHEMA, SqliteSchedules
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.tls import bare
from tailrace.wire.v1 import gateway_pb2 as pb


@pytest.fixture
async def stores(stores: Any, tmp_path: Path) -> AsyncIterator[Any]:
    """Adds schedules to the stores."""
    file = SqliteFile(tmp_path / "schedules.db", SCHEMA, name="schedules")
    await file.open()
    yield replace(stores, schedules=SqliteSchedules(file))
    await file.close()


async def test_the_result_of_a_streams_item_is_for_who_may_read_all(door: Door) -> None:
    # Given the result of an item of a stream, of which no queue knows whose it is
    await door.stores.results.put({"orders/0/7": b"42"})
    some, every = await door.made("read:add", name="some"), await door.made("read", name="every")
    # Then who may read some functions is refused, whatever number it guesses
    with door.as_(some) as address:
        async with GatewayClient(address) as caller:
            with pytest.raises(InvalidRequest, match="needs the right read, and has read:add"):
                await caller.call("Result", pb.ResultRequest(id="orders/0/7"))
            assert not (await caller.call("Result", pb.ResultRequest(id="orders/0/8"))).status.known
    # And who may read all has it
    with door.as_(every) as address:
        async with GatewayClient(address) as caller:
            assert (await caller.call("Result", pb.ResultRequest(id="orders/0/7"))).result == b"42"


async def test_a_schedule_takes_no_place_of_one_that_its_maker_may_not_operate(door: Door) -> None:
    # Given somebody else's schedule
    nightly = Schedule("nightly", "send_email", b'{"to":"ann"}', cron="0 3 * * *", tenant="other")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            before = await operator.put_schedule(nightly)
    secret = await door.made("submit:add", "operate:add")
    mine = replace(nightly, function="add", payload=b'{"a":1}', tenant="")
    # Then another one of its name is refused, in words that tell nothing of it
    with door.as_(secret) as address:
        async with GatewayClient(address) as caller:
            for replace_it in (False, True):
                with pytest.raises(Conflict, match="the name 'nightly' is taken by somebody else's schedule"):
                    await caller.put_schedule(mine, replace_it)
            # And one of a name of its own is signed
            own = await caller.put_schedule(replace(mine, name="own", created_by="ann@bastion"))
            assert own.schedule.created_by == "client ci"
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            assert (await operator.schedules("nightly"))[0].schedule == before.schedule
            # And the act says whose token it was
            acts = {each.on: each for each in await operator.acts(what="schedule")}
            assert acts["own"].who == "client ci"


async def test_an_act_on_a_job_is_of_whom_the_token_names(door: Door) -> None:
    secret = await door.made("submit", "read", "operate")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client, GatewayClient(address) as caller:
            job = client.job("sums", "add")
            await job.add(a=1)
            await caller.change_job(job.id, "cancel", who="alice@bastion")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            [act] = await operator.acts(what="job cancel")
            assert act.who == "alice@bastion as client ci"


async def test_bytes_of_a_stranger_are_refused_for_that_and_fill_no_log(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    address = bare(door.server.token_address)
    credentials = grpc.ssl_channel_credentials((door.fleet.folder / "ca.crt").read_bytes())
    async with grpc.aio.secure_channel(address, credentials) as channel:
        call = channel.unary_unary("/tailrace.v1.Gateway/Submit", request_serializer=bytes, response_deserializer=bytes)
        for _ in range(20):
            with pytest.raises(grpc.aio.AioRpcError, match="neither a certificate nor a token"):
                await call(b"\xff\xff")
    assert len(caplog.records) <= 6, "the first ones, and then seldom"
