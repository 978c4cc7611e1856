"""The listeners of a running platform are told nonsense: its processes live, say a plain line each, and go on working.

They run gRPC with few threads (`wire/grpc_threads.py`) and with the secret of this machine, unlike tests/integration.
`TAILRACE_FUZZ_CASES` and `TAILRACE_FUZZ_SEED` choose how many cases there are, and which.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.bench.process import free_ports

CASES, SEED = int(os.environ.get("TAILRACE_FUZZ_CASES", "20000")), int(os.environ.get("TAILRACE_FUZZ_SEED", "1"))
MINUTES = CASES / 13_000
TESTS = Path(__file__).parent.parent
FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")


@pytest.mark.long(minutes=MINUTES)
async def test_processes_that_are_told_nonsense_live_and_go_on_working(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Given a platform as `tailrace up` starts it, whose node answers with its numbers too
    (metrics,) = free_ports(1)
    config = tmp_path / "config"
    config.mkdir()
    (config / "gateway.yaml").write_text(f"metrics_listen: 127.0.0.1:{metrics}\n")
    journal = {"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")}
    platform = Platform(tmp_path / "data", [FUNCTIONS], config, environment=journal, worker={"executors": 1})
    await platform.start()
    try:
        before = platform.pids()
        listeners = {
            "gateway": platform.gateway_address,
            "scheduler": platform.scheduler_address,
            "store": platform.store_address,
            "delay": platform.delay_address,
            "direct": platform.direct_address,
            "metrics": f"127.0.0.1:{metrics}",
        }
        # When a client of this machine tells every listener nonsense
        command = [sys.executable, "-m", "scenes.fuzz_client", json.dumps(listeners), str(CASES), str(SEED)]
        client = await asyncio.create_subprocess_exec(*command, env={**os.environ, "PYTHONPATH": str(TESTS)})
        assert await client.wait() == 0
        # Then each process lives, and failed at nothing
        assert platform.pids() == before
        said = capfd.readouterr().err
        Path("/tmp/said.txt").write_text(said)
        assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:5000]
        assert "trying again" not in said, "parts did not reach each other"
        # And what is submitted runs
        async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as asking:
            (handle,) = await asking.submit_many([tailrace.Call("steady", ticks=1)])
            await handle.result(timeout=60)
    finally:
        await platform.stop()
