"""The scenario `power_cut`: a server (or the platform itself, on its default engine) is fed, its machine loses its
power, and it starts again on the data of its disk; accepted work that is lost is counted, with its age.

SIGKILL would not tell: the page cache survives it. The disk is one that can be looked at as a cut would leave it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..model.errors import ConfigError, InvalidRequest, Unavailable
from ..stores.config import StoresConfig
from ..stores.queue.engines import OpenQueue
from .crash_disk import CrashDisk
from .figures import Figures, Progress
from .open_queue import opened
from .postgres_server import PostgresNode
from .process import descendants
from .redis_server import DURABLE, RedisNode
from .server_node import ServerNode
from .workload import items

EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
#: Each server, by the name of its engine and its durability: a function that makes it, and the profile for it.
SERVERS: dict[str, tuple[Callable[[Path], ServerNode], str]] = {
    "postgres": (PostgresNode, "durable"),
    "redis": (partial(RedisNode, settings=DURABLE), "durable"),
    "redis-everysec": (partial(RedisNode, settings=EVERYSEC), "relaxed"),
}
#: The default engine is no server: the whole platform is on the disk then (`faults/power.py`).
SQLITE = "sqlite"
#: Writers at once, items of one submission, and a pause between two: far below a server's capacity.
WRITERS, BATCH, PAUSE = 4, 4, 0.005
#: Seconds of submissions before a cut, least and most.
FED = (2.5, 4.5)
#: Ids that one look asks for.
PAGE = 500


class PowerCut(NamedTuple):
    """The result of one cut: workloads accepted before it, seconds before it in which the oldest lost one was, the
    number lost, and whether the server had to be mended before it started."""

    accepted: int
    lost_s: float
    lost: int
    mended: bool


async def power_cut(folder: Path, cuts: int, progress: Progress, engine: str = "redis") -> Figures:
    """Makes so many cuts, each of a new disk. `accepted` and `lost`: workloads of all of them; `lost_s`: seconds before
    a cut in which the oldest lost workload had been accepted, of the worst one; `mended`: servers that did not start
    before they were mended as their own messages say. Raises ConfigError where no disk for it is possible."""
    if engine == SQLITE:
        from .faults.power import power_cut_sqlite

        return await power_cut_sqlite(folder, cuts, progress)
    if engine not in SERVERS:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join((SQLITE, *SERVERS))}")
    folder.chmod(0o711)  # PostgreSQL runs as another user
    chance = random.Random(cuts)
    found: list[PowerCut] = []
    for number in range(cuts):
        progress("feeding, and cutting the power", number / cuts)
        found.append(await _cut(folder / str(number), engine, chance.uniform(*FED)))
    return {
        "cuts": float(cuts),
        "accepted": float(sum(each.accepted for each in found)),
        "lost": float(sum(each.lost for each in found)),
        "lost_s": round(max(each.lost_s for each in found), 3),
        "mended": float(sum(each.mended for each in found)),
    }


async def _cut(folder: Path, engine: str, seconds: float) -> PowerCut:
    folder.mkdir(mode=0o711)
    make, durability = SERVERS[engine]
    disk = CrashDisk(folder / "disk", folder / "mounted")
    await asyncio.to_thread(disk.make)
    disk.mount()
    node: ServerNode | None = None
    try:
        node = make(disk.path / "server")
        node.start()
        node.wait()
        disk.sync()  # it was set up a while ago
        config = StoresConfig.model_validate(
            {"queue": {"engine": engine.partition("-")[0], "url": node.url}, "durability": durability}
        )
        async with opened(config) as queue, _fed(queue, seconds) as known:
            _stop(node)
            cut, known = time.monotonic(), dict(known)
            # Nothing writes any more: the copy is the state of the disk.
            found = await asyncio.to_thread(disk.cut, folder / "found", disk.path)
            node.kill()
        disk.unmount()
        disk = found
        disk.mount()
        mended = _started(node)
        async with opened(config) as queue:
            lost = await _missing(queue, known)
    finally:
        if node is not None:
            node.kill()
        disk.unmount()
    return PowerCut(len(known), *judged(known, lost, cut), mended)


def _started(node: ServerNode) -> bool:
    """Starts the server on the disk found. Returns whether it had to be mended first."""
    node.start()
    try:
        node.wait()
    except ConfigError:
        if not node.mend():
            raise
        node.start()
        node.wait()
        return True
    return False


def judged(known: Mapping[str, float], lost: list[str], cut: float) -> tuple[float, int]:
    """Seconds before the cut in which the oldest lost workload had been accepted, and the number lost."""
    return max((cut - known[each] for each in lost), default=0.0), len(lost)


@asynccontextmanager
async def _fed(queue: OpenQueue, seconds: float) -> AsyncIterator[dict[str, float]]:
    """Submits for so long and on until the end. Yields the time at which each id was accepted, by the monotonic
    clock."""
    known: dict[str, float] = {}

    async def writer(seed: int) -> None:
        for batch in items(1 << 30, 20, seed, size=BATCH):
            answers = await queue.submit(batch)
            now = time.monotonic()
            known.update((answer.id, now) for answer in answers)
            await asyncio.sleep(PAUSE)

    writers = [asyncio.create_task(writer(seed)) for seed in range(WRITERS)]
    await asyncio.wait(writers, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    try:
        yield known
    finally:
        for each in writers:
            each.cancel()
        for each in writers:
            with suppress(asyncio.CancelledError, Unavailable):
                await each


def _stop(node: ServerNode) -> None:
    for pid in descendants(node.pid):
        os.kill(pid, signal.SIGSTOP)


async def _missing(queue: OpenQueue, known: Mapping[str, float]) -> list[str]:
    ids = list(known)
    missing: list[str] = []
    for first in range(0, len(ids), PAGE):
        page = ids[first : first + PAGE]
        missing += [id for id, status in zip(page, await queue.status(page), strict=True) if status is None]
    return missing
