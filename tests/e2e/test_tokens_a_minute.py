"""A rate in tokens, with every process real: the use that the functions report stays within it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

#: Tokens a second, and at once: 90,000 a minute.
RATE, BURST = 1500.0, 3000.0
#: Records of the stream.
TEXTS = 15

FUNCTIONS = """
import asyncio
import os
import time
import tailrace

JOURNAL = os.environ["TAILRACE_TEST_JOURNAL"]

@tailrace.function(downstreams=["openai"], units={"tokens": {"field": "max_tokens"}})
async def ask(max_tokens: int, tokens: int, ctx: tailrace.Context) -> None:
    await spend(max_tokens, tokens, ctx)

@tailrace.function(downstreams=["openai"])
async def skim(tokens: int, ctx: tailrace.Context) -> None:
    await spend(int(dict(ctx.headers)["most"]), tokens, ctx)

async def spend(max_tokens: int, tokens: int, ctx: tailrace.Context) -> None:
    descriptor = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{time.monotonic():.6f} {tokens} {max_tokens}\\n".encode())
    os.close(descriptor)
    await asyncio.sleep(0.05)
    ctx.used("openai", tokens=tokens // 2)
    ctx.used("openai", tokens=tokens - tokens // 2)
"""


@pytest.mark.timeout(300)
async def test_what_runs_say_that_they_used_stays_within_the_rate_of_their_unit(tmp_path: Path) -> None:
    (tmp_path / "asking_for_tokens.py").write_text(FUNCTIONS)
    (tmp_path / "texts.yaml").write_text(
        "name: texts\nsource: {kind: log, stream: texts}\nfunction: skim\nunits: {tokens: {header: most}}\n"
    )
    journal = tmp_path / "journal"
    platform = Platform(
        tmp_path / "data",
        [str(tmp_path / "asking_for_tokens.py")],
        tailers=[tmp_path / "texts.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
    )
    try:
        await platform.start()
        async with (
            tailrace.AsyncClient(platform.gateway_address) as client,
            RemoteLog(platform.store_address) as log,
        ):
            # Given 90,000 tokens a minute
            set_it = ("quota", "set", "--downstream", "openai", "--units", f"tokens=90000/min,burst={BURST:g}")
            assert (await asyncio.to_thread(command, platform, *set_it)).returncode == 0
            listed = await asyncio.to_thread(command, platform, "quota", "list", "--json")
            assert json.loads(listed.stdout)[0]["units"] == "tokens 1500/s (burst 3000)"
            # When much more comes at once, from a queue and a stream, each item estimated right, too high, or too low
            calls = [(900, 400), (100, 300), (500, 500)] * 10
            made = [tailrace.Call("ask", max_tokens=most, tokens=used) for most, used in calls]
            handles = await client.submit_many(made)
            record = Record(b'{"tokens": 250}', headers=(("most", "400"),))
            await log.append("texts", 0, [record] * TEXTS)
            # Then what waits says how much of what is missing, and until when
            await explained(platform, handles[-1].id)
            for handle in handles:
                await handle.result(timeout=120)
            async with asyncio.timeout(120):
                while len(journal.read_text().splitlines()) < len(calls) + TEXTS:
                    await asyncio.sleep(0.1)
            # And in no stretch of time more was used than the rate lets, but for what ran estimated too low
            rows = [line.split() for line in journal.read_text().splitlines()]
            starts = sorted((float(at), int(used), int(most)) for at, used, most in rows)
            assert len(starts) == len(calls) + TEXTS
            assert_within(starts)
            whole = sum(used for _, used, _ in starts)
            assert starts[-1][0] - starts[0][0] >= (whole - BURST - 1000) / RATE - 1.0
            # And it was used: it did not take much longer than that
            assert starts[-1][0] - starts[0][0] <= whole / RATE * 1.5 + 3.0
            # And who used how many is counted
            await counted(platform, whole)
        await platform.drain(10)
    finally:
        await platform.stop()


def assert_within(starts: list[tuple[float, int, int]]) -> None:
    """Asserts that every window from one start to another uses at most the rate over half a second more than its
    length, the burst, and the excess over their estimates of the runs that began in its last half second."""
    for first, (begin, _, _) in enumerate(starts):
        used = 0
        for at, amount, _ in starts[first:]:
            used += amount
            late = sum(max(0, its - most) for when, its, most in starts if at - 0.5 <= when <= at)
            assert used <= RATE * (at - begin + 0.5) + BURST + late, f"{used} within {at - begin:.2f} s"


async def explained(platform: Platform, id: str) -> None:
    """Asserts that an item that waits says so, at one of several looks: between them the bucket may hold enough for a
    moment."""
    found = []
    for _ in range(8):
        said = await asyncio.to_thread(command, platform, "explain", id, "--json")
        holds = [hold for hold in json.loads(said.stdout)["holds"] if hold["reason"] == "units"]
        if holds and holds[0]["ends_at"]:
            assert (
                "downstream openai in tokens has" in holds[0]["detail"] and "at 1,500 per second" in holds[0]["detail"]
            )
            return
        found.append(said.stdout)
    raise AssertionError(found)


async def counted(platform: Platform, tokens: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        said = await asyncio.to_thread(command, platform, "usage", "--by", "downstream", "--json")
        units = [row["units"] for row in json.loads(said.stdout) if row["downstream"] == "openai"]
        if units == [{"tokens": tokens}]:
            return
        await asyncio.sleep(0.5)
    raise AssertionError(said.stdout)


def command(platform: Platform, *arguments: str) -> subprocess.CompletedProcess[str]:
    addresses = {"TAILRACE_GATEWAY": platform.gateway_address, "TAILRACE_SCHEDULER": platform.scheduler_address}
    return commands.tailrace(*arguments, env={**os.environ, **addresses})
