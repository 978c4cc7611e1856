"""A platform whose levels are somebody's own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from scenes import commands

from tailrace.model.priority import VARIABLE

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
OWN = "checkout, page, mail*, report, archive"
LEVELS = "service_levels:\n  checkout: {wait: 10s}\n  archive: {wait: 2d}\n"


@contextlib.contextmanager
def up(folder: Path, levels: str) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """A platform whose parts know these levels, and a function that runs a command against it."""
    own = {**os.environ, VARIABLE: levels, "TAILRACE_LOG": "json"}
    command = [*TAILRACE, "up", "--json", "--functions", "tasks.py", "--config", "configs", "--data", "data"]
    process = subprocess.Popen(command, cwd=folder, env=own, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = (json.loads(line) for line in process.stderr)
    ready = next(each for each in told if each.get("part") == "tailrace" and each.get("event") == "ready")
    gateway = ready["detail"].split(", ")[0].split()[1]

    def run(*arguments: str, levels: str = levels) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, VARIABLE: levels, "TAILRACE_GATEWAY": gateway}
        return commands.tailrace(*arguments, env=environment)

    try:
        yield run
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def laid_out(folder: Path, functions: str, levels: str) -> None:
    config = folder / "configs"
    config.mkdir(exist_ok=True)
    for name in ("gateway", "scheduler", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n" + levels * (name == "gateway"))
    (folder / "tasks.py").write_text(functions)


def test_levels_of_ones_own_go_the_whole_way(tmp_path: Path) -> None:
    # Given a platform with five levels
    laid_out(tmp_path, FUNCTIONS, LEVELS)
    with up(tmp_path, OWN) as run:
        # When items are submitted with a function's own, the default and the lowest, then each runs as what it is
        ids = [
            run("submit", *arguments).stdout.strip()
            for arguments in (("pay", "n=1"), ("send", "n=2"), ("send", "n=3", "--priority", "archive"))
        ]
        assert [run("result", id, "--wait", "--timeout", "20s").stdout for id in ids] == ["1\n", "2\n", "3\n"]
        found = json.loads(run("status", *ids, "--json").stdout)
        assert [each["priority"] for each in found] == ["checkout", "mail", "archive"]
        # And each is measured against its own service level
        allowed = {each.split()[0]: each.split()[2] for each in run("queue").stdout.splitlines()[2:7]}
        assert allowed == {"checkout": "10s", "page": "17m", "mail": "2h30m", "report": "2h30m", "archive": "2d"}
        # And a typo, or a client that was not told of them, hears which there are
        assert "expected one of checkout, page, mail" in run("submit", "send", "n=4", "--priority", "mal").stderr
        assert (
            f"({VARIABLE} names other ones)" in run("submit", "send", "n=5", "--priority", "archive", levels="").stderr
        )
        waits = run("submit", "send", "n=6", "--priority", "archive", "--delay", "2s").stdout.strip()
    # When the platform is started again without them, then what waits in one of them runs as of the lowest
    laid_out(tmp_path, FUNCTIONS.replace("checkout", "interactive"), "")
    with up(tmp_path, "") as run:
        assert run("result", waits, "--wait", "--timeout", "20s").stdout == "6\n"
        assert [each["priority"] for each in json.loads(run("status", waits, "--json").stdout)] == ["reporting"]
