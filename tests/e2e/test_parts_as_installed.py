"""Parts as containers and units run them: a node, a scheduler and a worker as processes, known by certificates, and
asked by `tailrace health`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.bench.process import free_ports

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
TASKS = Path(__file__).parents[2] / "deploy" / "compose" / "tasks.py"


def run(*words: str, environment: dict[str, str], within: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TAILRACE, *words], env=environment, capture_output=True, text=True, timeout=within, check=False
    )


async def until_it_is(right: Callable[[], bool], within: float = 40) -> None:
    async with asyncio.timeout(within):
        while not await asyncio.to_thread(right):
            await asyncio.sleep(0.2)


async def test_parts_find_each_other_and_say_whether_they_are_ready(tmp_path: Path) -> None:
    # Given certificates of a fleet, and the files of parts that speak TLS
    gateway, scheduler, metrics = free_ports(3)
    made = run(
        "auth", "init", str(tmp_path / "fleet"), "--fleet", "compose", "--host", "node", environment={**os.environ}
    )
    assert made.returncode == 0, made.stderr
    config = tmp_path / "config"
    config.mkdir()
    at = {name: f"tls:localhost:{port}" for name, port in (("gateway", gateway), ("scheduler", scheduler))}
    for name, address in at.items():
        (config / f"{name}.yaml").write_text(f"listen: {address}\n")
    (config / "worker.yaml").write_text(f"executors: 1\nmetrics_listen: 127.0.0.1:{metrics}\n")
    (config / "delay.yaml").write_text("listen: 127.0.0.1:0\n")
    (config / "stores.yaml").write_text("listen: 127.0.0.1:0\n")
    who = {
        role: {**os.environ, "TAILRACE_TLS": str(tmp_path / "fleet" / role), "TAILRACE_RUN_DIR": str(tmp_path / role)}
        for role in ("node", "scheduler", "worker", "operator", "client")
    }
    common = ("--config", str(config))
    lines = {
        "worker": ("worker", str(TASKS), *common, "--gateway", at["gateway"], "--scheduler", at["scheduler"]),
        "scheduler": ("scheduler", *common, "--gateway", at["gateway"]),
        "node": ("node", *common, "--data", str(tmp_path / "data"), "--scheduler", at["scheduler"]),
    }
    probes = {"node": at["gateway"], "scheduler": at["scheduler"], "worker": f"http://127.0.0.1:{metrics}"}

    def ready(part: str) -> bool:
        return run("health", probes[part], environment=who[part]).returncode == 0

    assert not ready("node")
    running = {}
    try:
        # When they are started, the worker first
        for name, words in lines.items():
            running[name] = await asyncio.create_subprocess_exec(
                *TAILRACE, *words, env=who[name], stderr=subprocess.DEVNULL
            )
        # Then each says that it is ready, and a function runs
        for name in lines:
            await until_it_is(lambda name=name: ready(name))  # type: ignore[misc]
        call = ("submit", "greet", "name=Ann", "--gateway", at["gateway"])
        submitted = await asyncio.to_thread(lambda: run(*call, environment=who["client"]))
        assert submitted.returncode == 0, submitted.stderr
        asked = ("result", submitted.stdout.strip(), "--wait", "--timeout", "30s", "--gateway", at["gateway"])
        assert (await asyncio.to_thread(lambda: run(*asked, environment=who["client"]))).stdout == '"Hello, Ann!"\n'
        # And when the scheduler is gone, the worker is attached to none, and says so
        running["scheduler"].kill()
        await running["scheduler"].wait()
        await until_it_is(lambda: not ready("worker"))
        told = await asyncio.to_thread(lambda: run("health", *probes.values(), environment=who["node"]))
        assert told.returncode == 1 and f"{probes['node']}: ready" in told.stdout
        assert "it is attached to no scheduler" in told.stdout and f"{probes['scheduler']}: " in told.stdout
    finally:
        for process in running.values():
            if process.returncode is None:
                process.terminate()
        await asyncio.gather(*(process.wait() for process in running.values()))


@pytest.mark.parametrize("address", ["https://127.0.0.1:1", "ftp://127.0.0.1", "nonsense"])
def test_what_is_no_address_is_told(address: str) -> None:
    done = run("health", address, environment={**os.environ})
    assert done.returncode != 0 and "Traceback" not in done.stderr and address in done.stderr + done.stdout
