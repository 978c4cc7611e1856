"""Executors that run nothing hold nothing of what they ran; a first process, of a container, that is told to end
ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = """
import asyncio, dataclasses, gc, weakref
import tailrace

ALIVE = weakref.WeakSet()

@dataclasses.dataclass
class Order:
    text: str

class Large(bytearray):
    pass

def keep(value):
    ALIVE.add(value)
    return value

Order.__hash__ = object.__hash__
Large.__hash__ = object.__hash__

@tailrace.function(results=False)
async def works(order: Order) -> Large:
    ALIVE.add(order)
    await asyncio.sleep(0.3)
    return keep(Large(1 << 20))

@tailrace.function(results=False, pool="plain")
def works_plainly(order: Order) -> Large:
    import time
    ALIVE.add(order)
    time.sleep(0.3)
    return keep(Large(1 << 20))

@tailrace.function
async def left() -> int:
    gc.collect()
    return len(ALIVE)

@tailrace.function(pool="plain")
def left_plainly() -> int:
    gc.collect()
    return len(ALIVE)
"""
UNSHARED = (
    subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode == 0
    if sys.platform == "linux"
    else False
)


@pytest.mark.trust(point=19)
async def test_runners_that_rest_keep_no_value_and_no_arguments(tmp_path: Path) -> None:
    # Given runs of which many went on at once, each with arguments and a value of its own
    (tmp_path / "large.py").write_text(FUNCTIONS)
    platform = Platform(tmp_path / "data", [str(tmp_path / "large.py")], worker={"executors": 1})
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            calls = [
                tailrace.Call(name, order={"text": "x" * 1000})
                for name in ("works", "works_plainly")
                for _ in range(20)
            ]
            async with asyncio.timeout(30):
                for handle in await client.submit_many(calls):
                    await handle.result()
                # When all of them are over, then nothing of them is left
                assert await (await client.submit("left")).result() == 0
                assert await (await client.submit("left_plainly")).result() == 0
    finally:
        await platform.stop()


@pytest.mark.trust(point=19)
@pytest.mark.skipif(not UNSHARED, reason="this user may make no PID namespace (Linux, root)")
def test_a_first_process_that_is_told_to_end_while_it_loads_ends(tmp_path: Path) -> None:
    # Given the platform as the first process of a PID namespace, as in a container, that is loading its modules
    command = [sys.executable, "-m", "tailrace.cli", "up", "--data", str(tmp_path / "data")]
    environment = {**os.environ, "TAILRACE_RUN_DIR": str(tmp_path / "run")}
    outer = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *command], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        first = _child_that_loads(outer.pid)
        # When it is told to end
        os.kill(first, signal.SIGTERM)
        # Then it does
        assert outer.wait(20) in (0, 128 + signal.SIGTERM)
    finally:
        outer.kill()
        outer.wait()


def _child_that_loads(pid: int) -> int:
    """The process below, once it has loaded the first of its libraries."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if "msgspec" in Path(f"/proc/{child}/maps").read_text():
                return int(child)
        except (OSError, ValueError):
            pass
    raise AssertionError("it does not load")
