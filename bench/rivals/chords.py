"""The part `chord` of the scenario `rivals`: many items whose results one last function gets as a list, once by the
rival on its server and once by tailrace's `map_reduce` on engines that can hold jobs.

Trees of jobs rest on SQLite or PostgreSQL and not on Redis, so both have in common only the machine and the durability
of their writes. Both are measured while their processes run: from the first call that submits to the end of the last
function.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import tailrace

from ...assembly.platform import Platform
from ...model.errors import InvalidRequest, TailraceError
from ..figures import Figures, Progress
from ..process import cpu_of_tree
from ..server_node import running
from .queue_servers import RELAXED, SERVERS, server
from .roster import Rival
from .running import FIRST_WITHIN, SETTLE, SLOWEST, feed, started
from .settings import RivalSettings
from .tally import latest
from .work import GatheredEnd, ends

#: Engines of tailrace's trees, in turns.
TREES_ON = ("sqlite", "postgres")
#: Items of the chord before the one that is measured.
FIRST = 64
LOOK_EVERY = 0.005


class MeasuredChord(NamedTuple):
    """A measurement of one chord. `items_per_s`: from the first call to the end of the last function; `after`: seconds
    from the end of the last item to that; `cpu_per_item`: CPU seconds of all processes with the server, without the
    submitting one."""

    items_per_s: float
    after: float
    cpu_per_item: float


async def chords(folder: Path, count: int, progress: Progress, engine: str, against: Sequence[Rival]) -> Figures:
    """`…_items_per_s`, `…_after_ms` and `…_cpu_us_per_item` of tailrace on each engine and of each rival, with as many
    items; `…_ratio`: tailrace's rate as a multiple of the rival's. Raises InvalidRequest where no rival has a chord."""
    gathering = [(each, each.chord) for each in against if each.chord is not None]
    if not gathering:
        raise InvalidRequest(f"--part chord: no rival on {engine} that was asked for has one; expected celery on redis")
    figures: Figures = {}
    for rival, chord in gathering:
        items = max(1, int(count * rival.share))
        figures["items"] = float(items)
        found: dict[str, MeasuredChord] = {}
        for where in TREES_ON:
            progress(f"tailrace on {where}", 0.0)
            found[f"tailrace_{where}"] = await _own(folder / where, items, where, relaxed=engine in RELAXED)
        progress(rival.name, 0.5)
        found[rival.name] = await _rivals(folder / rival.name, items, engine, chord)
        for name, each in found.items():
            figures[f"{name}_items_per_s"] = each.items_per_s
            figures[f"{name}_after_ms"] = 1e3 * each.after
            figures[f"{name}_cpu_us_per_item"] = 1e6 * each.cpu_per_item
        for where in TREES_ON:
            ours, theirs = found[f"tailrace_{where}"], found[rival.name]
            figures[f"{rival.name}_{where}_ratio"] = ours.items_per_s / theirs.items_per_s
    return figures


async def _own(folder: Path, items: int, where: str, *, relaxed: bool) -> MeasuredChord:
    folder.mkdir()
    config, settings = folder / "config", _settings(folder)
    config.mkdir()
    with ExitStack() as stack:
        stores = f"durability: {'relaxed' if relaxed else 'durable'}\n"
        pids: list[int] = []
        if where in SERVERS:
            node = stack.enter_context(running(SERVERS[where], folder.with_name(f"{where}-server")))
            stores += f'queue: {{engine: {where}, url: "{node.url}"}}\n'
            pids.append(node.pid)
        (config / "stores.yaml").write_text(stores)
        module = f"{__package__}.map_reduce"
        platform = Platform(folder / "data", [module], config, environment=settings.environment())
        await platform.start()
        try:
            pids += platform.pids().values()
            async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:

                async def submit(count: int) -> float:
                    began = time.monotonic()
                    job = client.map_reduce("bench", "part", "whole")
                    await job.add_many({"number": number} for number in range(count))
                    await job.seal()
                    return began

                return await _measured(settings, items, submit, pids)
        finally:
            await platform.stop()


async def _rivals(folder: Path, items: int, engine: str, rival: Rival) -> MeasuredChord:
    with server(folder, engine) as node:
        settings = _settings(folder)._replace(url=node.url)
        with started(rival, settings, folder / "log") as processes:

            async def submit(count: int) -> float:
                took = await feed(rival, settings, "fill", str(count))
                return time.monotonic() - took

            pids = [node.pid, *(each.pid for each in processes)]
            return await _measured(settings, items, submit, pids, folder / "log")


def _settings(folder: Path) -> RivalSettings:
    tally = folder / "tally"
    tally.mkdir()
    return RivalSettings(str(tally), starts=str(folder / "ends"))


async def _measured(
    settings: RivalSettings,
    items: int,
    submit: Callable[[int], Awaitable[float]],
    pids: Sequence[int],
    log: Path | None = None,
) -> MeasuredChord:
    """Runs a small chord first; then measures one of so many items. `submit` returns the time at which it began. Raises
    TailraceError when one does not end in its time, with the end of the `log`."""
    await submit(FIRST)
    await _end(settings, 1, FIRST, log)
    await asyncio.sleep(SETTLE)
    before = _cpu(pids)
    began = await submit(items)
    end = await _end(settings, 2, items, log)
    return MeasuredChord(items / (end.at - began), end.at - latest(Path(settings.tally)), (_cpu(pids) - before) / items)


async def _end(settings: RivalSettings, number: int, items: int, log: Path | None) -> GatheredEnd:
    """The end of the chord of that number. Raises TailraceError where it does not come, or values are missing."""
    until = time.monotonic() + FIRST_WITHIN + items / SLOWEST
    while len(found := ends(Path(settings.starts))) < number:
        if time.monotonic() > until:
            said = "" if log is None else f": {log.read_text(errors='replace')[-1000:]}"
            raise TailraceError(f"a chord of {items} items did not end in its time{said}")
        await asyncio.sleep(LOOK_EVERY)
    if found[-1].values != items:
        raise TailraceError(f"{found[-1].values} of {items} results were gathered")
    return found[-1]


def _cpu(pids: Sequence[int]) -> float:
    return sum(sum(cpu_of_tree(pid).values()) for pid in pids)
