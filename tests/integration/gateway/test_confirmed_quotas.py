"""`tailrace quota apply` waits until all holders of limits confirm them, and names those that did not."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from tailrace.cli import app
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.limits import Snapshot
from tailrace.wire.channel import dial
from tailrace.wire.gateway import GatewayClient, watch
from tailrace.wire.v1 import gateway_pb2 as pb
from tailrace.wire.v1.gateway_pb2_grpc import GatewayStub


async def run(*arguments: str) -> tuple[int, str, str]:
    """Runs a command in a thread, since it has an event loop of its own. Returns its exit code and its output."""
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    return result.exit_code, result.stdout, result.stderr


@contextlib.asynccontextmanager
async def scheduler(gateway: GatewayServer, name: str) -> AsyncIterator[list[Snapshot]]:
    """A scheduler that watches and confirms, with the snapshots that it applied. It has applied one."""
    got: list[Snapshot] = []
    came = asyncio.Event()

    def apply(snapshot: Snapshot) -> None:
        got.append(snapshot)
        came.set()

    task = asyncio.create_task(watch(gateway.address, apply, scheduler=name))
    try:
        await asyncio.wait_for(came.wait(), 10)
        yield got
    finally:
        task.cancel()
        await asyncio.wait([task])


@contextlib.asynccontextmanager
async def deaf(gateway: GatewayServer, name: str) -> AsyncIterator[None]:
    """A scheduler that hears all and applies nothing."""
    channel = dial(gateway.address)
    stub: Any = GatewayStub(channel)  # type: ignore[no-untyped-call]
    stream = stub.Watch(pb.WatchRequest(scheduler=name))
    await stream.read()
    yield
    stream.cancel()
    await channel.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "quotas.yaml"
    path.write_text("functions: {add: {concurrency: 7}}\n")
    return path


async def test_it_says_where_a_version_is_in_force_and_after_how_long(gateway: GatewayServer, file: Path) -> None:
    there = ("--gateway", gateway.address)
    async with scheduler(gateway, "one:1") as first, scheduler(gateway, "two:2"):
        # When quotas are applied
        code, out, err = await run("quota", "apply", str(file), *there)
        # Then it is said of both that they have them, and they do
        assert (code, err) == (0, "")
        assert "is in force at one:1, two:2, after" in out
        assert [each.concurrency for each in first[-1].quotas] == [7]
        # And a second time nothing changes, and is confirmed at once
        code, out, _ = await run("quota", "apply", str(file), "--json", *there)
        told = json.loads(out)
        assert (code, told["changed"], told["confirmed"], told["unconfirmed"]) == (0, False, ["one:1", "two:2"], [])
        # And the history says where which version is in force
        [row, *_] = json.loads((await run("quota", "history", "--json", *there))[1])
        assert row["in_force_at"] == ["one:1", "two:2"]
        assert "one:1, two:2" in (await run("quota", "history", *there))[1]


async def test_it_tells_who_has_not_confirmed_and_waits_no_longer_than_told(gateway: GatewayServer, file: Path) -> None:
    there = ("--gateway", gateway.address)
    async with scheduler(gateway, "good:1"), deaf(gateway, "deaf:2"):
        async with scheduler(gateway, "gone:3"):
            pass
        # When one does not confirm and another one was cut off
        code, out, err = await run("quota", "apply", str(file), "--wait", "300ms", *there)
        # Then both are named, and the code says that it is not done
        assert code == 1
        assert "in force at 1 of 3" in out
        assert "not confirmed by the scheduler deaf:2: it has confirmed nothing yet" in err
        assert "gone:3" in err and "has not watched for" in err
        code, out, _ = await run("quota", "apply", str(file), "--wait", "100ms", "--json", *there)
        told = json.loads(out)
        assert code == 1
        assert [each["scheduler"] for each in told["unconfirmed"]] == ["deaf:2", "gone:3"]
        assert told["confirmed"] == ["good:1"]
        assert told["seconds"] < 2
        # And who does not want to wait does not
        assert (await run("quota", "apply", str(file), "--wait", "0", *there))[0] == 0


async def test_without_a_scheduler_it_is_kept_until_one_comes(gateway: GatewayServer, file: Path) -> None:
    there = ("--gateway", gateway.address)
    code, out, _ = await run("quota", "apply", str(file), *there)
    assert (code, "no scheduler watches" in out) == (0, True)
    [row] = json.loads((await run("quota", "history", "--json", *there))[1])
    async with scheduler(gateway, "late:1"):
        code, out, _ = await run("quota", "rollback", str(row["version"]), *there)
        assert (code, "late:1" in out) == (0, True)


async def test_a_gateway_that_does_not_answer_is_named(gateway: GatewayServer, file: Path) -> None:
    async with scheduler(gateway, "one:1"):
        both = f"{gateway.address},127.0.0.1:1"
        code, _, err = await run("quota", "apply", str(file), "--wait", "100ms", "--gateway", both)
    assert (code, "the gateway 127.0.0.1:1" in err) == (1, True)


@pytest.mark.parametrize("wait", ["soon", "-1s", "3h"])
async def test_a_wait_that_makes_no_sense_is_refused_before_anything_changes(
    gateway: GatewayServer, file: Path, wait: str
) -> None:
    there = ("--gateway", gateway.address)
    code, _, _ = await run("quota", "apply", str(file), f"--wait={wait}", *there)
    assert code != 0
    assert (await run("quota", "history", *there))[1] == "quotas were never set\n"


async def test_a_stranger_confirms_nothing_and_a_hostile_name_is_refused(gateway: GatewayServer) -> None:
    async with GatewayClient(gateway.address) as client:
        with pytest.raises(InvalidRequest, match="no scheduler"):
            await client.call("Confirm", pb.ConfirmRequest(scheduler="stranger", quotas_version=9))
        assert await client.limits_in_force() == []
    channel = dial(gateway.address)
    stub: Any = GatewayStub(channel)  # type: ignore[no-untyped-call]
    stream = stub.Watch(pb.WatchRequest(scheduler="x" * 100_000))
    with pytest.raises(grpc.aio.AioRpcError, match="at most"):
        await stream.read()
    await channel.close()
