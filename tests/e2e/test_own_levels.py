"""A platform whose levels are somebody's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import tailrace

@tailrace.function(priority="checkout")
async def pay(n: int) -> int:
    return n

@tailrace.function
async def send(n: int) -> int:
    return n
"""
LEVELS = "service_levels:\n  checkout: {wait: 10s}\n  archive: {wait: 2d}\n"


def test_levels_of_ones_own_go_the_whole_way(tmp_path: Path) -> None:
    # Given a platform with five levels
    config = tmp_path / "configs"
    config.mkdir()
    for name in ("gateway", "scheduler", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n" + LEVELS * (name == "gateway"))
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    own = {**os.environ, "TAILRACE_PRIORITIES": "checkout, page, mail*, report, archive", "TAILRACE_LOG": "json"}
    command = [*TAILRACE, "up", "--json", "--functions", "tasks.py", "--config", "configs", "--data", "data"]
    process = subprocess.Popen(command, cwd=tmp_path, env=own, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = (json.loads(line) for line in process.stderr)
    ready = next(each for each in told if each.get("part") == "tailrace" and each.get("event") == "ready")
    gateway = ready["detail"].split(", ")[0].split()[1]

    def run(*arguments: str, levels: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**(own if levels else os.environ), "TAILRACE_GATEWAY": gateway}
        command = [*TAILRACE, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    try:
        # When items are submitted with a function's own, the default and the lowest, then each runs as what it is
        ids = [
            run("submit", *arguments).stdout.strip()
            for arguments in (("pay", "n=1"), ("send", "n=2"), ("send", "n=3", "--priority", "archive"))
        ]
        assert [run("result", id, "--wait", "--timeout", "20s").stdout for id in ids] == ["1\n", "2\n", "3\n"]
        found = json.loads(run("status", *ids, "--json").stdout)
        assert [each["priority"] for each in found] == ["checkout", "mail", "archive"]
        # And each is measured against its own service level
        levels = {each.split()[0]: each.split()[2] for each in run("queue").stdout.splitlines()[2:7]}
        assert levels == {"checkout": "10s", "page": "17m", "mail": "2h30m", "report": "2h30m", "archive": "2d"}
        # And a typo, or a client that was not told of them, hears which there are
        assert "expected one of checkout, page, mail" in run("submit", "send", "n=4", "--priority", "mal").stderr
        stranger = run("submit", "send", "n=5", "--priority", "archive", levels=False)
        assert "TAILRACE_PRIORITIES names other ones" in stranger.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
