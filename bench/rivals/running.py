"""The rivals: which programs each one is, and how fast they are together."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...sdk.model.errors import ConfigError, InvalidRequest, TailraceError
from ..process import cpu_of_tree
from .settings import Settings
from .tally import total

#: Seconds between looks, until the first item is done, and until nothing more may be missing at so many items a second.
LOOK_EVERY = 0.02
FIRST_WITHIN = 60.0
SLOWEST = 200
STOP_WITHIN = 10.0

_HERE = __package__
_CELERY = ("-m", "celery", "--app", f"{_HERE}.kafka_celery", "worker", "--concurrency", "2", "--loglevel", "ERROR")


@dataclass(frozen=True, slots=True)
class Rival:
    """`programs` are what runs side by side (arguments of Python), `needs` the modules that must be installed, `share`
    of the items is what it gets, so that a slow one takes no hour."""

    name: str
    programs: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...]
    share: float = 1.0
    redis: bool = False


#: Two processes each, for two cores; Celery's worker has two, beside the loop that feeds it.
RIVALS = {
    rival.name: rival
    for rival in (
        Rival("loop", (("-m", f"{_HERE}.kafka_loop"),) * 2, ("kafka",)),
        Rival("faststream", (("-m", f"{_HERE}.kafka_faststream"),) * 2, ("faststream", "confluent_kafka"), 0.1),
        Rival(
            "faststream_batch", (("-m", f"{_HERE}.kafka_faststream_batch"),) * 2, ("faststream", "confluent_kafka"), 0.5
        ),
        Rival(
            "celery",
            (
                (*_CELERY, "--without-gossip", "--without-mingle", "--without-heartbeat"),
                ("-m", f"{_HERE}.kafka_celery"),
            ),
            ("celery", "redis", "kafka"),
            0.02,
            redis=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Pace:
    """Items a second from the first look that shows one done to the last, and CPU seconds of all processes by item."""

    items_per_s: float
    cpu_per_item: float


def chosen(names: str) -> list[Rival]:
    """Those that are named, with commas between; all for an empty text. Raises InvalidRequest for a name that is none,
    ConfigError when a library is not installed."""
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(RIVALS)
    for name in wanted:
        if name not in RIVALS:
            raise InvalidRequest(f"unknown rival {name!r}: expected some of {', '.join(RIVALS)}")
    rivals = [RIVALS[name] for name in dict.fromkeys(wanted)]
    missing = {need for rival in rivals for need in rival.needs if importlib.util.find_spec(need) is None}
    if missing:
        lacking = [rival.name for rival in rivals if missing.intersection(rival.needs)]
        raise ConfigError(
            f"to compare with {', '.join(lacking)}, install "
            f'{", ".join(sorted(missing))}: pip install "tailrace[bench]", or in a clone `make rivals`'
        )
    return rivals


async def pace(rival: Rival, settings: Settings, count: int, log: Path, told: Callable[[], Awaitable[None]]) -> Pace:
    """Runs a rival until it did `count` items, and on until `told` returns. Its processes write to `log`. Raises
    TailraceError with the end of that when one ends, or when nothing comes, and when there is too little to time."""
    tally = Path(settings.tally)
    tally.mkdir()
    with _started(rival, settings, log) as processes:
        limit, done = time.monotonic() + FIRST_WITHIN, 0
        while not (done := total(tally)):
            await _look(rival, processes, limit, log)
        if done >= count:
            raise TailraceError(f"{rival.name} did all of {count} items before it was looked at: ask for more --items")
        began, first, cpu = time.monotonic(), done, _cpu(processes)
        limit = began + FIRST_WITHIN + count / SLOWEST
        while (done := total(tally)) < count:
            await _look(rival, processes, limit, log)
        seconds = max(time.monotonic() - began, 1e-9)
        spent = (_cpu(processes) - cpu) / max(1, done - first)
        await told()
    return Pace((done - first) / seconds, spent)


async def _look(rival: Rival, processes: Sequence[subprocess.Popen[bytes]], limit: float, log: Path) -> None:
    if time.monotonic() > limit or any(process.poll() is not None for process in processes):
        raise TailraceError(f"{rival.name} did not get through: {log.read_text(errors='replace')[-1000:]}")
    await asyncio.sleep(LOOK_EVERY)


def _cpu(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    return sum(sum(cpu_of_tree(process.pid).values()) for process in processes)


@contextlib.contextmanager
def _started(rival: Rival, settings: Settings, log: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Each program with a session of its own, so that what it started ends with it."""
    environment = os.environ | settings.environment()
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
