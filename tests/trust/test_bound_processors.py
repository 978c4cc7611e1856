"""A worker on a machine of which it may use a part has executors for that part, and says so."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tailrace.assembly.platform import Platform
from tailrace.wire.scheduler import SchedulerClient

BOUND = "import os, sys; os.sched_setaffinity(0, {%d}); from tailrace.cli import main; sys.exit(main())"


@pytest.mark.trust(point=18)
@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="a worker can only be bound where there are two processors (Linux)",
)
async def test_a_worker_that_is_bound_to_a_processor_has_one_executor(tmp_path: Path) -> None:
    # Given a worker that is bound to one processor, and whose configuration says nothing of executors
    (tmp_path / "tasks.py").write_text("import tailrace\n\n\n@tailrace.function\nasync def idle() -> None: ...\n")
    config = tmp_path / "config"
    config.mkdir()
    (config / "worker.yaml").write_text("name: bound\nslots: 10\n")
    platform = Platform(tmp_path / "data", [], worker={"executors": 1})
    await platform.start()
    inspector = SchedulerClient(platform.scheduler_address)
    addresses = ("--scheduler", platform.scheduler_address, "--gateway", platform.gateway_address)
    code = BOUND % min(os.sched_getaffinity(0))
    command = (sys.executable, "-c", code, "worker", str(tmp_path / "tasks.py"), "--config", str(config), *addresses)
    process = await asyncio.create_subprocess_exec(*command)
    try:
        # When it attaches
        async with asyncio.timeout(30):
            while not (found := [each for each in (await inspector.inspect()).workers if each.pools]):
                await asyncio.sleep(0.05)
        # Then it has the slots of one executor, and the label of one processor
        (worker,) = found
        assert dict(worker.labels)["cpus"] == "1"
        assert {pool.name: pool.slots for pool in worker.pools} == {"default": 10, "default (alone)": 4}
    finally:
        process.terminate()
        await process.wait()
        await inspector.close()
        await platform.stop()
