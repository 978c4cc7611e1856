"""A run of `tailrace bench` that is told to end leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tailrace.bench.process import descendants, runs
from tailrace.bench.server_node import READY

SOON = 60.0


@pytest.mark.usefixtures("redis_server")
@pytest.mark.parametrize("scenario", ["latency", "faults"])
def test_told_to_end_it_ends_its_servers_and_gives_its_disk_back(scenario: str, tmp_path: Path) -> None:
    # Given a run whose server takes commands and whose platform is starting or started
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    environment.pop("TAILRACE_BENCH_REDIS", None)
    command = [sys.executable, "-m", "tailrace.cli", "bench", "--scenario", scenario, "--engine", "redis"]
    bench = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + SOON
        while not any(READY in log.read_bytes() for log in tmp_path.rglob("redis*/**/log") if log.is_file()) or (
            len(family := descendants(bench.pid)) < 3
        ):
            assert bench.poll() is None and time.monotonic() < until
            time.sleep(0.05)

        # When it is told to end
        bench.send_signal(signal.SIGTERM)
        bench.communicate(timeout=SOON)
    finally:
        bench.kill()

    # Then its status says why it ended, and neither a process nor a file is left
    assert bench.returncode == 128 + signal.SIGTERM
    assert not [pid for pid in family if runs(pid)]
    assert [*tmp_path.iterdir()] == []
