"""One run: a world under load, the plan's faults one after the other, then quiet, then the verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...assembly.settings import LeasesConfig
from ...model.dead_letter import EVERY
from ...model.errors import Unavailable
from ...model.lease import LeaseSizes, wait_for_source
from ...stores.remote import RemoteDeadLetters
from ..percentiles import percentile
from . import journal
from .feed import FaultFeed
from .inject import Injector, RunItem
from .journal import CRASH, FATAL, RETRY, START, SUCCESS, Follower, Line
from .path import STREAM, DoneFault
from .plan import FaultStep, FedItem
from .starved import StarvedParts
from .verdict import FaultVerdict, Finding, judge
from .world import FaultWorld

Progress = Callable[[str, float], None]

#: Seconds without news in the journal after which the run is over, even if items are missing.
STUCK = 60.0
#: Seconds between two portions of items, and seconds over which a step's share of them is spread.
PACE, STEP_SECONDS = 0.1, 4.0
#: Seconds that recovery may take beyond the longest lease.
MARGIN = 2.0
#: Seconds after an end within which it is settled where nothing is broken: mostly hundredths, also at a load of 14.
SETTLED = 1.0
#: Items a second while nothing is broken, and how many at once.
CALM_RATE, CALM_BATCH = 100.0, 5


@dataclass(slots=True)
class FaultRun:
    """A run with faults: its seed and plan, and its results."""

    seed: int
    faults: list[DoneFault] = field(default_factory=list)
    verdict: FaultVerdict = field(default_factory=FaultVerdict)
    steps: int = 0
    seconds: float = 0.0
    bound: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


class _Watch:
    """The journal so far, and waits for a line in it."""

    def __init__(self, folder: Path) -> None:
        self._follower = Follower(folder)
        self.ended: set[str] = set()
        self.started: dict[str, float] = {}
        self.news = 0.0
        self._said: dict[str, Line] = {}

    def look(self) -> None:
        lines = self._follower.more()
        for line in lines:
            if line.word == START:
                self.started.setdefault(line.id, line.at)
            if line.word in (SUCCESS, FATAL):
                self.ended.add(line.id)
            if line.word in (SUCCESS, RETRY, CRASH):
                self._said.setdefault(line.id, line)
        if lines:
            self.news = time.monotonic()

    async def first(self, id: str, seconds: float) -> Line | None:
        """Waits for the first word that shows that an item's run did its deed."""
        end = time.monotonic() + seconds
        while id not in self._said and time.monotonic() < end:
            await asyncio.sleep(0.05)
            self.look()
        return self._said.get(id)


async def run(
    world: FaultWorld,
    items: Sequence[FedItem],
    steps: Sequence[FaultStep],
    seed: int,
    progress: Progress,
    calm: Mapping[str, Sequence[FedItem]] | None = None,
) -> FaultRun:
    """Runs the plan in a world, whose folder keeps data, journals and logs. It always ends all that it started. `calm`:
    items put in one after the other before the faults, by the name that the figures of their start get."""
    sizes = LeasesConfig(heartbeat=world.heartbeat).sizes()
    result = FaultRun(seed, bound=wait_for_source(sizes) + world.group_time + MARGIN)
    began = time.monotonic()
    starved = StarvedParts(lambda: {name: part.pid for name, part in world.parts.items()}, world.heartbeat)
    watching = asyncio.create_task(starved.watch())
    try:
        if any(action.what == "disk" for step in steps for action in step.actions) and (why := world.disk.mount()):
            result.skipped["disk"] = why
        progress("starting", 0.0)
        await world.start()
        await _under_load(world, items, steps, result, sizes, progress, calm or {}, starved.found)
    finally:
        watching.cancel()
        await world.stop()
        result.seconds = time.monotonic() - began
    return result


async def _under_load(
    world: FaultWorld,
    items: Sequence[FedItem],
    steps: Sequence[FaultStep],
    result: FaultRun,
    sizes: LeaseSizes,
    progress: Progress,
    calm: Mapping[str, Sequence[FedItem]],
    starved: Sequence[DoneFault],
) -> None:
    """Does a run, step by step: calm, faults while items come in, quiet, the verdict."""
    feed = world.feed()
    watch = _Watch(world.journal)
    injector = Injector(world, sizes.source, _running(feed, watch, 4 * sizes.source + 20), result.seed)
    try:
        await feed.start()
        await _without_faults(world, feed, watch, result, progress, calm)
        pacing = asyncio.create_task(_pace(feed, items, len(steps), result))
        try:
            await asyncio.sleep(1.0)
            await _broken(world, injector, steps, watch, result, progress)
            progress("waiting for the rest", 1.0)
            await pacing
        finally:
            pacing.cancel()
        unknown, dead = await _at_rest(world, feed, watch, sizes)
    finally:
        await feed.close()
    _judged(world, feed, result, [*unknown, *injector.found], dead, sizes.source, starved)


def _running(feed: FaultFeed, watch: _Watch, seconds: float) -> RunItem:
    """A function that puts an item in and waits, for so many seconds, until its run did its deed."""

    async def run_item(item: FedItem) -> tuple[int, float] | None:
        [task] = feed.put([item])
        [id] = await task
        line = await watch.first(id, seconds)
        return None if line is None else (line.pid, line.at)

    return run_item


async def _without_faults(
    world: FaultWorld,
    feed: FaultFeed,
    watch: _Watch,
    result: FaultRun,
    progress: Progress,
    calm: Mapping[str, Sequence[FedItem]],
) -> None:
    """Measures start times while nothing is broken, of each kind of items in `calm`."""
    if calm:
        await _warmed(feed, watch, world)
    for name, some in calm.items():
        progress(f"without faults, {name}", 0.0)
        await _calm(name, some, feed, watch, result)


async def _broken(
    world: FaultWorld,
    injector: Injector,
    steps: Sequence[FaultStep],
    watch: _Watch,
    result: FaultRun,
    progress: Progress,
) -> None:
    """Does the plan's steps one after the other, each noted in the world's folder, with the pauses of the plan."""
    for number, step in enumerate(steps):
        progress(step.kind, number / len(steps))
        done = await injector.perform(step)
        result.faults += done
        with (world.folder / "steps").open("a") as file:
            file.write(
                "".join(
                    f"{fault.begin:.2f} {fault.end:.2f} {action}\n"
                    for fault, action in zip(done, step.actions, strict=False)
                )
            )
        await asyncio.sleep(step.pause)
        result.steps += 1
        watch.look()
        await asyncio.sleep(world.build_up)


async def _at_rest(
    world: FaultWorld, feed: FaultFeed, watch: _Watch, sizes: LeaseSizes
) -> tuple[list[Finding], set[str]]:
    """Waits until everything has ended and nothing can begin any more. Returns findings about settlements, and the ids
    of the dead letters."""
    while feed.pending:
        await asyncio.sleep(0.1)
    await feed.complete()
    await _finished(feed, watch, world.ports["store"])
    unknown = await world.settled(feed)
    await asyncio.sleep(wait_for_source(sizes) + 0.5)  # any second run has begun by then
    return unknown, await _dead_letters(world.ports["store"])


def _judged(
    world: FaultWorld,
    feed: FaultFeed,
    result: FaultRun,
    unknown: list[Finding],
    dead: set[str],
    lease: float,
    starved: Sequence[DoneFault],
) -> None:
    """Puts the verdict into the result."""
    result.failed = feed.failed
    # A run that goes on now is a second one: it is let end, so that the journal is whole.
    reading = journal.read(world.journal)
    result.verdict = judge(
        reading.lines,
        feed.expected,
        result.faults,
        dead_letters=dead,
        damaged=reading.damaged,
        owners=world.owners(),
        lease=lease,
        settled=SETTLED,
        wall=time.time() - time.monotonic(),
        in_flight=world.in_flight,
        starved=starved,
    )
    found, more = world.judged(reading.lines, feed.expected)
    result.verdict.findings += [*unknown, *found]
    result.more |= more


async def _warmed(feed: FaultFeed, watch: _Watch, world: FaultWorld) -> None:
    """Waits until every partition is read."""
    item = FedItem(STREAM, "work", {})
    ids = {id for task in [feed.put([item])[0] for _ in range(world.partitions)] for id in await task}
    while not ids <= watch.ended:
        await asyncio.sleep(0.1)
        watch.look()


async def _calm(name: str, items: Sequence[FedItem], feed: FaultFeed, watch: _Watch, result: FaultRun) -> None:
    """Puts items in at an even pace, and notes the time from append to start of those that succeed."""
    tasks: list[asyncio.Task[list[str]]] = []
    for first in range(0, len(items), CALM_BATCH):
        tasks += feed.put(items[first : first + CALM_BATCH])
        await asyncio.sleep(CALM_BATCH / CALM_RATE)
    ids = {id for task in tasks for id in await task}
    end = time.monotonic() + STUCK
    while not ids <= watch.ended and time.monotonic() < end:
        await asyncio.sleep(0.1)
        watch.look()
    starts = [watch.started[id] - feed.sent[id] for id in ids if id in watch.started and not feed.expected[id].dies]
    shares = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    result.more |= {f"start_{word}_ms_{name}": round(1e3 * percentile(starts, share), 1) for word, share in shares}


async def _pace(feed: FaultFeed, items: Sequence[FedItem], steps: int, result: FaultRun) -> None:
    """Puts the items in evenly: each step's share over the usual time of a step, so that something is in flight
    whenever something breaks."""
    share = len(items) / (steps + 1)
    given, step, began = 0, 0, time.monotonic()
    while given < len(items):
        if result.steps != step:
            step, began = result.steps, time.monotonic()
        due = round(share * (step + min(1.0, (time.monotonic() - began) / STEP_SECONDS)))
        if step >= steps:
            due = len(items)
        feed.put(items[given:due])
        given = max(given, due)
        await asyncio.sleep(PACE)


async def _finished(feed: FaultFeed, watch: _Watch, store: str) -> None:
    """Waits until everything has ended, or nothing has happened for a long time. Killers write no end: they are over
    when they are dead letters."""
    watch.news = time.monotonic()
    dead: set[str] = set()
    while time.monotonic() < watch.news + STUCK:
        watch.look()
        waiting = [id for id in feed.expected if id not in watch.ended and id not in dead]
        if not feed.pending and not waiting:
            return
        if not feed.pending and all(feed.expected[id].dies for id in waiting):
            dead = await _dead_letters(store)
        await asyncio.sleep(1.0 if dead else 0.2)


async def _dead_letters(store: str) -> set[str]:
    """Ids of all dead letters."""
    letters = RemoteDeadLetters(store)
    found: dict[str, None] = {}
    try:
        after = 0
        while True:
            try:
                page = await letters.list(EVERY, 500, after)
            except Unavailable:
                await asyncio.sleep(0.2)
                continue
            if not page:
                return set(found)
            found.update((letter.id, None) for letter in page)
            after = page[-1].number
    finally:
        await letters.close()
