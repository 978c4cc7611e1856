"""A function runs where its requirements are met, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import os
import tailrace

@tailrace.function(requires=["gpu", "python>=3.11"])
async def train(n: int) -> str:
    return os.environ.get("MACHINE", "")

@tailrace.function
async def greet() -> str:
    return "hello"
"""


def run(*arguments: str) -> str:
    done = commands.tailrace(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_an_item_waits_for_a_worker_that_can_run_it(tmp_path: Path) -> None:
    # Given a platform whose worker is no more than its machine
    (tmp_path / "models.py").write_text(FUNCTIONS)
    platform = Platform(tmp_path / "data", [str(tmp_path / "models.py")], None, heartbeat=0.5)
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            assert await (await client.submit("greet")).result(timeout=30) == "hello"
            # When something is submitted that requires more, then it is taken, waits, and says for what
            waits = await client.submit("train", n=1)
            scheduler = ("--scheduler", platform.scheduler_address, "--json")
            why = json.loads(await asyncio.to_thread(run, "explain", "--function", "train", *scheduler))
            assert why["reason"] == "no_worker" and "does not meet gpu (it has no such label)" in str(why["holds"])
            assert not (await waits.status()).ended
            # And a worker that has it runs it, and nobody else
            config = tmp_path / "large"
            config.mkdir()
            (config / "worker.yaml").write_text("labels: [gpu, region=eu]\nexecutors: 1\nname: large\n")
            process = await asyncio.create_subprocess_exec(
                *(*TAILRACE, "worker", str(tmp_path / "models.py"), "--config", str(config)),
                *("--scheduler", platform.scheduler_address, "--gateway", platform.gateway_address),
                stderr=subprocess.DEVNULL,
                env={**os.environ, "MACHINE": "large"},
            )
            try:
                first = await waits.result(timeout=30)
                others = [await (await client.submit("train", n=n)).result(timeout=30) for n in range(5)]
                assert {first, *others} == {"large"}
                found = json.loads(await asyncio.to_thread(run, "inspect", *scheduler))
                labels = {each["name"]: each["labels"] for each in found["workers"]}
                assert labels["large"]["region"] == "eu" and "python" in labels["large"]
            finally:
                process.terminate()
                await process.wait()
    finally:
        await platform.stop()


@pytest.mark.parametrize(
    ("labels", "why"),
    [("[g p]", "'g p' is not a label"), ("[region=eu]", "'train' requires gpu (it has no such label). Set `labels`")],
)
def test_a_worker_that_can_run_nothing_says_what_it_lacks(tmp_path: Path, labels: str, why: str) -> None:
    (tmp_path / "models.py").write_text(FUNCTIONS.replace("@tailrace.function\n", "\n"))
    (tmp_path / "worker.yaml").write_text(f"labels: {labels}\n")
    command = [*TAILRACE, "worker", str(tmp_path / "models.py"), "--config", str(tmp_path)]
    command += ["--scheduler", "127.0.0.1:1", "--gateway", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and why in done.stderr and "Traceback" not in done.stderr
