"""Runs a rival: measures the rate of its processes together, and the wait of one item for its start; feeds it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...model.errors import TailraceError
from ..functions import starts
from ..process import cpu_of_tree
from .feeding import RATE
from .roster import Rival
from .settings import RivalSettings
from .tally import total

#: Seconds between looks, until the first item is done, and until nothing more may be missing at so many items a second.
LOOK_EVERY = 0.02
FIRST_WITHIN = 60.0
SLOWEST = 20
STOP_WITHIN = 10.0
#: Seconds between the first start of a rival's processes that is seen and the measurement of latency.
SETTLE = 2.0


@dataclass(frozen=True, slots=True)
class MeasuredPace:
    """A measured rate: items a second from the first look that shows one done to the last, and CPU seconds by item, of
    all the rival's processes and of the server."""

    items_per_s: float
    cpu_per_item: float
    server_cpu_per_item: float = 0.0


async def pace(
    rival: Rival, settings: RivalSettings, count: int, log: Path, told: Callable[[], Awaitable[None]], server: int = 0
) -> MeasuredPace:
    """Runs a rival until it did `count` items, and on until `told` returns. Its processes write to `log`; `server` is
    the process of its server, if that is to be measured. Raises TailraceError with the end of the log when one ends, or
    no item is done, and when there is too little to time."""
    tally = Path(settings.tally)
    tally.mkdir()
    with started(rival, settings, log) as processes:
        limit, done = time.monotonic() + FIRST_WITHIN, 0
        while not (done := total(tally)):
            await _look(rival, processes, limit, log)
        if done >= count:
            raise TailraceError(f"{rival.name} did all of {count} items before it was looked at: ask for more --items")
        began, first, cpu, servers = time.monotonic(), done, _cpu(processes), _of(server)
        limit = began + FIRST_WITHIN + count / SLOWEST
        while (done := total(tally)) < count:
            await _look(rival, processes, limit, log)
        seconds = max(time.monotonic() - began, 1e-9)
        spent, serving = _cpu(processes) - cpu, _of(server) - servers
        await told()
    items = max(1, done - first)
    return MeasuredPace((done - first) / seconds, spent / items, serving / items)


async def waits(rival: Rival, settings: RivalSettings, seconds: float, log: Path) -> tuple[float, list[float]]:
    """Submissions a second that one program made for so long, up to 200, and the wait of each one for its start,
    seconds; the first second is left out. Raises TailraceError when they do not start in time."""
    starts_file = Path(settings.starts)
    with started(rival, settings, log) as processes:
        await feed(rival, settings, "pace", f"{1 / RATE}")
        limit = time.monotonic() + FIRST_WITHIN
        while not starts(starts_file):
            await _look(rival, processes, limit, log)
        await asyncio.sleep(SETTLE)  # its other process has started as well by then
        count = int(RATE * (1 + seconds))
        took = await feed(rival, settings, "pace", f"{1 + seconds}")
        limit = time.monotonic() + FIRST_WITHIN
        while len(found := starts(starts_file)) <= count:
            await _look(rival, processes, limit, log)
    return count / took, found[1 + RATE :]


async def feed(rival: Rival, settings: RivalSettings, verb: str, size: str = "0") -> float:
    """Runs the program that submits to a rival (`feeding.py`). Returns the seconds that it took. Raises TailraceError
    with its output when it fails, or takes too long."""
    command = [*rival.feeder, verb, size]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=os.environ | settings.environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        limit = FIRST_WITHIN + float(size) / (SLOWEST if verb == "fill" else 1)
        said = (await asyncio.wait_for(process.communicate(), limit))[0].decode(errors="replace")
    except TimeoutError:
        raise TailraceError(f"{rival.name}: `{verb} {size}` took longer than {limit:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise TailraceError(f"{rival.name}: `{verb} {size}` failed: {said[-1000:]}")
    return float(said.split()[-1])


async def _look(rival: Rival, processes: Sequence[subprocess.Popen[bytes]], limit: float, log: Path) -> None:
    if time.monotonic() > limit or any(process.poll() is not None for process in processes):
        raise TailraceError(f"{rival.name} did not get through: {log.read_text(errors='replace')[-1000:]}")
    await asyncio.sleep(LOOK_EVERY)


def _of(server: int) -> float:
    return sum(cpu_of_tree(server).values()) if server else 0.0


def _cpu(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    return sum(sum(cpu_of_tree(process.pid).values()) for process in processes)


@contextlib.contextmanager
def started(rival: Rival, settings: RivalSettings, log: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Starts the rival's programs, each with a session of its own, so that processes it started end with it."""
    environment = os.environ | settings.environment() | rival.variables
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("wb") as out:
            for program in rival.programs:
                command = [sys.executable, *program]
                processes.append(
                    subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
                )
        yield processes
    finally:
        for process in processes:
            _signal(process, signal.SIGTERM)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_WITHIN)
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
