"""A platform that `tailrace up` started in a folder, and its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenes import commands

TAILRACE = [sys.executable, "-m", "tailrace.cli"]

FUNCTIONS = '''
import tailrace

@tailrace.function(priority="interactive")
async def greet(name: str) -> str:
    """Says hello."""
    if not name:
        raise ValueError("nobody is there")
    return f"Hello {name}"

@tailrace.function
async def wait(seconds: float) -> None:
    import asyncio
    await asyncio.sleep(seconds)

@tailrace.function
def fail(reason: str) -> None:
    raise tailrace.Fatal(reason)

@tailrace.function
def where() -> str:
    return tailrace.Client().gateway

@tailrace.function(retry=tailrace.Retry(max_crashes=2))
def crash(ctx: tailrace.Context) -> None:
    import os, signal
    ctx.progress("page 7")
    os.kill(os.getpid(), signal.SIGKILL)
'''


@dataclass
class Up:
    """A platform that `tailrace up` started: its process, its folder, how its commands find it, and its log until it
    was ready."""

    process: subprocess.Popen[str]
    folder: Path
    environment: dict[str, str]
    said: list[dict[str, str]]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return commands.tailrace(*arguments, env=self.environment)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def start(folder: Path) -> Up:
    """Starts `tailrace up` on free ports. Returns when it says that it is ready."""
    config = folder / "configs"
    config.mkdir(exist_ok=True)
    for name in ("gateway", "scheduler", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n")
    (folder / "tasks.py").write_text(FUNCTIONS)
    process = subprocess.Popen(
        [*TAILRACE, "up", "--json", "--functions", "tasks.py", "--config", "configs", "--data", "data"],
        cwd=folder,
        env={**os.environ, "TAILRACE_LOG": "json"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said: list[dict[str, str]] = []
    for line in process.stderr:
        said.append(json.loads(line))
        if said[-1].get("part") == "tailrace" and said[-1].get("event") == "ready":
            break
    gateway, scheduler = (word.split()[1] for word in said[-1]["detail"].split(", "))
    environment = {**os.environ, "TAILRACE_GATEWAY": gateway, "TAILRACE_SCHEDULER": scheduler}
    return Up(process, folder, environment, said)
