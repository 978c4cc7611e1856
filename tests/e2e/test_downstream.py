"""A downstream that throttles, with every process real: it is closed, seen, probed, and nothing is parked or spent."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.scheduler import SchedulerClient
from tailrace.wire.v1 import scheduler_pb2 as pb

FUNCTIONS = """
import os
import tailrace

SHUT, RUNS = os.environ["TAILRACE_TEST_SHUT"], os.environ["TAILRACE_TEST_RUNS"]

def ran(what: str) -> None:
    descriptor = os.open(RUNS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, what.encode() + b"\\n")
    os.close(descriptor)

async def pay(ctx: tailrace.Context) -> None:
    if os.path.exists(SHUT):
        raise tailrace.Throttled("429 from stripe", downstream="stripe", retry_after=2)
    ran(f"{ctx.attempt}")

@tailrace.function(downstreams=["stripe"])
async def charge(ctx: tailrace.Context) -> None:
    await pay(ctx)

@tailrace.function(downstreams=["stripe"], throttled_by=[ConnectionError])
async def refund(ctx: tailrace.Context) -> None:
    if os.path.exists(SHUT):
        raise ConnectionResetError("away")
    ran(f"{ctx.attempt}")

@tailrace.function
async def mail(ctx: tailrace.Context) -> None:
    ran("mail")
"""
ITEMS = 300


async def test_a_downstream_that_throttles_is_closed_seen_and_probed_and_nothing_is_parked(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    (tmp_path / "refunds.yaml").write_text("name: refunds\nsource: {kind: log, stream: refunds}\nfunction: refund\n")
    shut, runs = tmp_path / "shut", tmp_path / "runs"
    shut.touch()
    platform = Platform(
        tmp_path / "data",
        [str(tmp_path / "shop.py")],
        tailers=[tmp_path / "refunds.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_SHUT": str(shut), "TAILRACE_TEST_RUNS": str(runs)},
    )
    try:
        await platform.start()
        async with (
            RemoteLog(platform.store_address) as log,
            GatewayClient(platform.gateway_address) as gateway,
            tailrace.AsyncClient(platform.gateway_address) as client,
        ):
            # Given a downstream that throttles all that call it, from a queue and from a stream
            await log.append("refunds", 0, [Record(b"{}")] * ITEMS)
            handles = await client.submit_many([tailrace.Call("charge")] * ITEMS)
            asked = SchedulerClient(platform.scheduler_address)
            await until(lambda: shown(asked, lambda state: state.probe_at > 0))
            # Then everybody can see that it is closed, since when, why, and when one item probes it
            [state] = (await asked.inspect()).downstreams
            assert (state.downstream, state.tenant) == ("stripe", "") and state.shrank_at > 0 and state.throttled > 0
            rows = json.loads((await asyncio.to_thread(command, platform, "quota", "list", "--json")).stdout)
            assert [row["downstream"] for row in rows] == ["stripe"] and "probe" in rows[0]["now"]
            said = await asyncio.to_thread(command, platform, "explain", handles[-1].id, "--json")
            assert json.loads(said.stdout)["reason"] in ("downstream", "not_due"), said.stdout
            # And what calls nothing goes on
            for handle in await client.submit_many([tailrace.Call("mail")] * 20):
                await handle.result(timeout=30)
            # When it takes calls again
            shut.unlink()
            await until(lambda: done(runs, 2 * ITEMS + 20))
            # Then all ran, none of it parked, and no attempt was spent
            ran = runs.read_text().split()
            assert sorted(ran) == ["1"] * (2 * ITEMS) + ["mail"] * 20
            overview = await gateway.overview()
            refunds = next(each for each in overview.tailers if each.name == "refunds")
            assert (refunds.parked, refunds.dead) == (0, 0)
            await asked.close()
            await platform.drain(10)
    finally:
        await platform.stop()


def command(platform: Platform, *arguments: str) -> subprocess.CompletedProcess[str]:
    addresses = {"TAILRACE_GATEWAY": platform.gateway_address, "TAILRACE_SCHEDULER": platform.scheduler_address}
    return commands.tailrace(*arguments, env={**os.environ, **addresses})


async def shown(asked: SchedulerClient, right: Callable[[pb.DownstreamState], bool]) -> bool:
    return any(right(state) for state in (await asked.inspect()).downstreams)


async def done(runs: Path, count: int) -> bool:
    return runs.exists() and len(runs.read_text().split()) >= count


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(90):
        while not await true():
            await asyncio.sleep(0.05)
