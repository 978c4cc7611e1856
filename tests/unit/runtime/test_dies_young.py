"""An executor whose process ends before its sockets are connected: its death is told as any other one's, and nothing is
closed under the event loop that it was just given (libuv ends the whole worker for that)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind
from tailrace.runtime.batch import AssignedFlight
from tailrace.runtime.executors import ExecutorProcess
from tailrace.runtime.frames import ExecutorSetup
from tailrace.runtime.guard_memory import WatchPages
from tailrace.runtime.pool import HANDED_BACK, Pool, Reports

#: Starts executors whose program ends at once; each is reaped while another one of its sockets is given to the loop.
PROGRAM = """
import asyncio, shutil, sys, threading
from tailrace.runtime.executors import ExecutorProcess
from tailrace.runtime.frames import ExecutorSetup
from tailrace.runtime.guard_memory import WatchPages
from tailrace.foundation.loop import loop_factory

class Loop:
    def __init__(self, loop, at):
        self.loop, self.at, self.told = loop, at, threading.Event()

    def __getattr__(self, name):
        return getattr(self.loop, name)

    def call_soon_threadsafe(self, *given):
        self.loop.call_soon_threadsafe(*given)
        self.told.set()

    async def create_unix_connection(self, *given, **named):
        connecting = asyncio.ensure_future(self.loop.create_unix_connection(*given, **named))
        if self.at == 0:
            self.loop.call_soon(self.told.wait, 30)
        self.at -= 1
        return await connecting

async def main():
    loop, watch, told = asyncio.get_running_loop(), WatchPages.create(), []
    loop.set_exception_handler(lambda _, context: told.append(str(context)))
    setup = ExecutorSetup([], [], [], 1, 1, 1, 1.0, 1.0)
    for at in range(4):
        tell = lambda _, death: told.append(death.code)
        executor = ExecutorProcess(setup, on_frame=lambda *_: None, on_death=tell, watch=watch)
        executor._loop = Loop(loop, at)
        await executor.start()
        await executor.dead.wait()
    print(told)

sys.executable = shutil.which("false")
with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
    runner.run(main())
"""


@pytest.mark.parametrize("choice", ["asyncio", ""])
def test_the_death_of_one_that_is_being_connected_is_told_when_it_is(choice: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, choice], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 1, 1, 1]\n", "")


class Unlucky(ExecutorProcess):
    """An executor whose sockets cannot be connected, the first time: no descriptor is left."""

    left = 1

    async def _connect(self, end: socket.socket, kind: Any) -> None:
        if Unlucky.left:
            Unlucky.left -= 1
            raise OSError(24, "Too many open files")
        await super()._connect(end, kind)


async def test_one_that_cannot_be_spoken_to_is_ended_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch, failed = WatchPages.create(), list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(str(context)))
    reports = Reports(lambda keys: 100.0, never, never, never, never)
    module = tmp_path / "works.py"
    module.write_text("import tailrace\n\n\n@tailrace.function\ndef works() -> None: ...\n")
    setup = ExecutorSetup([str(module)], sys.path, ["works"], 1, 1, 1 << 20, 5.0, 30.0)
    pool = Pool("default", setup, 1, reports, load_limit=60.0, process=partial(Unlucky, watch=watch))
    # When the first process of a pool is started, and cannot be connected
    await pool.start()
    # Then another one is there in its place, and its own end was told as any other
    assert "Too many open files" in caplog.text
    assert (len(pool.executors), pool.deaths, failed) == (1, 1, [])
    await pool.stop("the test is over")
    watch.close()


async def test_a_pool_whose_processes_cannot_be_started_keeps_no_item_and_has_no_places_until_they_can(
    tmp_path: Path,
) -> None:
    # Given a pool of one process, on a machine that can start no other one just now
    watch, ends, told = WatchPages.create(), dict[int, Ended](), asyncio.Event()
    broken = False

    def starts(*given: Any, **named: Any) -> ExecutorProcess:
        if broken:
            raise OSError(11, "Resource temporarily unavailable")
        return ExecutorProcess(*given, **named, watch=watch)

    def ended(succeeded: list[int], others: dict[int, Ended]) -> None:
        ends.update(others)

    module = tmp_path / "works.py"
    module.write_text("import tailrace\n\n\n@tailrace.function\ndef works() -> None: ...\n")
    setup = ExecutorSetup([str(module)], sys.path, ["works"], 2, 1, 1 << 20, 5.0, 30.0)
    reports = Reports(lambda keys: 100.0, ended, never, never, told.set)
    pool = Pool("default", setup, 1, reports, load_limit=60.0, process=starts)
    await pool.start()
    assert pool.places() == (2, 2)
    # When its process ends, and an item waits for the next one
    broken = True
    (executor,) = pool.executors
    executor.kill_unexplained()
    await executor.dead.wait()
    pool.place(AssignedFlight(1, Flight(1, 1, [Kind("works")], ["a"], [b""], [1]), [1]), 0, 1)
    await told.wait()
    # Then it goes back with the reason, as does what comes later, and there are no places
    pool.place(AssignedFlight(1, Flight(2, 2, [Kind("works")], ["b"], [b""], [1]), [1]), 0, 1)
    assert [end.outcome for end in ends.values()] == [Outcome.HELD, Outcome.HELD]
    assert all("cannot be started" in end.reason and end.after == HANDED_BACK for end in ends.values())
    assert pool.places() == (0, 0)
    # And when one can be started, the places are there again
    told.clear()
    broken = False
    await told.wait()
    assert (pool.places(), pool.failure) == ((2, 2), "")
    await pool.stop("the test is over")
    watch.close()


def never(*_: Any) -> None: ...
