"""Usage, and the effect of other quotas, on a platform of its own processes."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform

TAILRACE = [sys.executable, "-m", "tailrace.cli"]

FUNCTIONS = """
import asyncio
import tailrace

@tailrace.function(downstreams=["smtp"])
async def mail() -> None:
    await asyncio.sleep(0.05)

@tailrace.function
async def add() -> None:
    pass
"""


def environment(platform: Platform) -> dict[str, str]:
    return {
        **os.environ,
        "TAILRACE_GATEWAY": platform.gateway_address,
        "TAILRACE_SCHEDULER": platform.scheduler_address,
    }


async def begun(platform: Platform, *arguments: str) -> asyncio.subprocess.Process:
    """Begins a command, which runs on."""
    return await asyncio.create_subprocess_exec(
        *TAILRACE, *arguments, env=environment(platform), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


async def told(platform: Platform, *arguments: str) -> str:
    """Runs a command that must succeed, and returns its output."""
    done = await asyncio.to_thread(commands.tailrace, *arguments, env=environment(platform))
    assert done.returncode == 0, done.stderr
    return done.stdout


async def said_by(process: asyncio.subprocess.Process) -> str:
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def used(platform: Platform, items: int) -> list[dict[str, object]]:
    """Waits until usage counts so many runs, and returns it: reports go every few seconds."""
    async with asyncio.timeout(60):
        while True:
            rows = json.loads(await told(platform, "usage", "--by", "function,tenant,downstream", "--json"))
            if sum(row["items"] for row in rows) >= items:
                return rows


async def work(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        handles = [await client.submit("mail", tenant="acme") for _ in range(6)]
        handles += [await client.submit("mail", tenant="other") for _ in range(2)]
        handles += [await client.submit("add") for _ in range(4)]
        for handle in handles:
            await handle.result()


@pytest.mark.timeout(300)
async def test_usage_counts_once_over_restarts_and_a_recording_shows_what_quotas_would_do(tmp_path: Path) -> None:
    (tmp_path / "tasks_of_usage.py").write_text(FUNCTIONS)
    recording, quotas = tmp_path / "traffic", tmp_path / "quotas.yaml"
    quotas.write_text("quotas: [{tenant: acme, rate: 0.5, burst: 1}]\n")
    platform = Platform(tmp_path / "data", [str(tmp_path / "tasks_of_usage.py")])
    await platform.start()
    recorded: asyncio.subprocess.Process | None = None
    try:
        # Given a recording under way
        recorded = await begun(platform, "record", str(recording))
        async with asyncio.timeout(60):
            while not recording.exists():
                await asyncio.sleep(0.1)
        await work(platform)
        # Then who used what is told by function, tenant and downstream
        rows = await used(platform, 12)
        assert {(row["function"], row["tenant"], row["downstream"]): row["items"] for row in rows} == {
            ("mail", "acme", "smtp"): 6,
            ("mail", "other", "smtp"): 2,
            ("add", "", ""): 4,
        }
        [acme] = [row for row in rows if row["tenant"] == "acme"]
        assert acme["slot_seconds"] >= 6 * 0.05
        # And as CSV
        table = list(csv.DictReader(io.StringIO(await told(platform, "usage", "--by", "hour,tenant", "--csv"))))
        assert sum(int(row["items"]) for row in table) == 12 and set(table[0]) == {
            "hour",
            "tenant",
            "items",
            "units",
            "slot_seconds",
        }
        # And the recording shows before against after
        recorded.send_signal(signal.SIGINT)
        assert "12 items arrived" in await said_by(recorded)
        plan = json.loads(await told(platform, "quota", "plan", str(quotas), "--traffic", str(recording), "--json"))
        [acme] = [row for row in plan["traffic"] if row["tenant"] == "acme"]
        assert acme["before"]["start_delay_p99"] < 1
        assert acme["after"]["start_delay_p99"] > 8
        assert acme["after"]["limited"] == 1.0
        assert "tenant acme" in plan["changes"][0]["quota"]
    finally:
        if recorded is not None and recorded.returncode is None:
            recorded.kill()
            await recorded.communicate()
        await platform.stop()
    # When all begins anew, and works once more
    platform = Platform(tmp_path / "data", [str(tmp_path / "tasks_of_usage.py")])
    await platform.start()
    try:
        await work(platform)
        # Then both are counted, each once
        assert sum(row["items"] for row in await used(platform, 24)) == 24  # type: ignore[misc]
    finally:
        await platform.stop()
