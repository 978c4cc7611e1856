"""Injection: does one step of the plan to a world, and records each fault, its time and the executions it may touch."""

from __future__ import annotations

import asyncio
import math
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..process import resident_bytes
from .functions import OUTAGE
from .host_wire import APART, HOST_WAYS, HostBreak
from .hosts_plan import LOSE, parts_of
from .path import QUEUE, STREAM, DoneFault, Hit, Reach, reach_of
from .plan import STRANGER, WORKERS, Breakage, FaultStep, FedItem
from .proxy import FaultProxy
from .strangers import METHODS, strangers
from .verdict import Finding
from .world import FaultWorld, signal_all, until

#: Runs an item made for one fault; returns its process and the time at which it did its deed, or None.
RunItem = Callable[[FedItem], Awaitable[tuple[int, float] | None]]

#: MiB that a process gets beyond its present memory, and MiB that its function then asks for.
_ROOM, _HUNGER = 64, 1024
#: Seconds in which a part ends, and in which one that is started says yes or no, on a busy machine.
_STARTS = 30.0
#: Bytes by which a part may grow while strangers call it, under load: of what they send that is a sixth.
_KEPT = 64 << 20


class Injector:
    """Breaks the parts of a world. `lease`: the longest lease of the run, seconds; lengths of faults are shares of
    it. `found` are events that must not happen, of those that only show while something is broken."""

    def __init__(self, world: FaultWorld, lease: float, run_item: RunItem, seed: int) -> None:
        self._world = world
        self._lease = lease
        self._run_item = run_item
        self._chance = random.Random(f"inject {seed}")
        self.found: list[Finding] = []

    async def perform(self, step: FaultStep) -> list[DoneFault]:
        """Does the step's actions at once; returns when everything broken is whole again."""
        done = await asyncio.gather(*(self._one(action, step.kind) for action in step.actions))
        found = [fault for fault in done if fault is not None]
        if len(found) > 1 and all(any(hit.reach is Reach.RAN for hit in fault.hits) for fault in found):
            # Both workers at once: nobody could go on before one of them was back.
            found = [fault._replace(back=min(one.end for one in found)) for fault in found]
        return found

    async def _one(self, action: Breakage, kind: str) -> DoneFault | None:
        do = {
            "kill": self._end,
            "term": self._end,
            "roll": self._roll,
            "outage": self._outage,
            "stop": self._stop,
            "exit": self._exit,
            "lock": self._lock,
            "memory": self._memory,
            "disk": self._disk,
            "gone": self._gone,
            STRANGER: self._stranger,
            "cut": self._cut,
            **dict.fromkeys((*HOST_WAYS, LOSE), self._host),
        }.get(action.what, self._wire)
        return await do(action, kind)

    def _executor(self) -> int | None:
        running = [pid for worker in WORKERS for pid in self._world.executors(worker)]
        return self._chance.choice(running) if running else None

    async def _end(self, action: Breakage, kind: str) -> DoneFault | None:
        world, target = self._world, action.target
        number = signal.SIGKILL if action.what == "kill" else signal.SIGTERM
        if target == "executor":
            pid = self._executor()
            if pid is None:
                return None
            begin = time.monotonic()
            signal_all([pid], number)
            return _one(kind, "executor", begin, begin, {pid}, lasting=False)
        if target == "guard":
            worker = self._chance.choice(WORKERS)
            await world.parts[worker].ready.wait()
            begin, pids = time.monotonic(), self._processes(worker)
            signal_all([each for each in (world.guard(worker),) if each], number)
            return _one(kind, target, begin, time.monotonic(), pids, lasting=False)
        members = world.members(target)
        await asyncio.gather(*(world.parts[name].ready.wait() for name in members))
        pids = self._processes(target)
        deaths = {name: world.parts[name].deaths for name in members}
        begin = time.monotonic()
        signal_all([pid for name in members for pid in world.parts[name].processes], number)
        await asyncio.gather(*(world.up_again(name, count) for name, count in deaths.items()))
        # There is only one of each part but workers: nothing goes on before it was started again.
        return _one(kind, target, begin, time.monotonic(), pids, lasting=target not in WORKERS)

    def _processes(self, target: str) -> set[int]:
        """Processes that do a part's work, where there are several of its kind: a worker's with all under it, those of
        tailers. Empty: all of its kind."""
        world = self._world
        if target in WORKERS:
            return set(world.everything_under(target))
        return {world.parts[name].pid for name in world.members(target)} if reach_of(target) is Reach.TAILED else set()

    async def _roll(self, action: Breakage, kind: str) -> DoneFault:
        """Ends the members one after the other; each is back before the next is ended."""
        begin = time.monotonic()
        rolled = [await self._end(Breakage("term", name), kind) for name in self._world.members(action.target)]
        end = time.monotonic()
        return DoneFault(kind, begin, end, tuple(hit for each in rolled if each for hit in each.hits), back=end)

    async def _outage(self, action: Breakage, kind: str) -> DoneFault:
        """Makes every function fail for `length` seconds."""
        marker = self._world.journal / OUTAGE
        begin = time.monotonic()
        marker.touch()
        try:
            await asyncio.sleep(action.length)
        finally:
            end = time.monotonic()
            marker.unlink()
        return DoneFault(kind, begin, end, back=end)  # every failure was reported: nothing is lost with it

    async def _stop(self, action: Breakage, kind: str) -> DoneFault | None:
        world, target = self._world, action.target
        lasting = True
        touched: set[int] = set()
        if target == "executor":
            pid = self._executor()
            if pid is None:
                return None
            stopped = [pid]
            touched = {pid}
        elif target == "supervisor":
            worker = self._chance.choice(WORKERS)
            stopped = [world.parts[worker].pid]
            touched, lasting = self._processes(worker), False
        elif target == "guard":
            worker = self._chance.choice(WORKERS)
            stopped = [world.guard(worker)]
            touched, lasting = self._processes(worker), False
        elif target in WORKERS:
            stopped = world.everything_under(target)
            touched, lasting = set(stopped), False
        else:
            stopped = [world.parts[name].pid for name in world.members(target)]
            touched = self._processes(target)
        stopped = [pid for pid in stopped if pid]
        begin = time.monotonic()
        signal_all(stopped, signal.SIGSTOP)
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            signal_all(stopped, signal.SIGCONT)
        return _one(kind, target, begin, end, touched, lasting=lasting)

    async def _exit(self, action: Breakage, kind: str) -> DoneFault | None:
        source = self._chance.choice((QUEUE, STREAM))
        done = await self._run_item(FedItem(source, "exits_once", {}))
        return None if done is None else _one(kind, "executor", done[1], done[1], {done[0]}, lasting=False)

    async def _lock(self, action: Breakage, kind: str) -> DoneFault | None:
        source = self._chance.choice((QUEUE, STREAM))
        seconds = math.ceil(4 * self._lease)
        done = await self._run_item(FedItem(source, "keeps_the_lock_once", {"seconds": seconds}))
        if done is None:
            return None
        await asyncio.sleep(action.length * self._lease)
        return _one(kind, "executor", done[1], time.monotonic(), {done[0]}, lasting=True)

    async def _memory(self, action: Breakage, kind: str) -> DoneFault:
        limited = [pid for worker in WORKERS for pid in self._world.executors(worker)]
        begin = time.monotonic()
        for pid in limited:
            _limit(pid, _ROOM)
        await self._run_item(FedItem(self._chance.choice((QUEUE, STREAM)), "hungry", {"megabytes": _HUNGER}))
        for pid in limited:
            _limit(pid, None)
        # The hungry item may come too late: all items that ran had less memory meanwhile, whether it was seen or not.
        return _one(kind, "executor", begin, time.monotonic(), set(limited), lasting=True)

    async def _disk(self, action: Breakage, kind: str) -> DoneFault:
        begin = time.monotonic()
        self._world.disk.fill()
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            self._world.disk.make_room()
        return _one(kind, action.target, begin, end, set(), lasting=True)

    async def _gone(self, action: Breakage, kind: str) -> DoneFault:
        """Kills the store, and has it find one of its files missing or empty, as on a volume that is not the right one;
        the file is back when it was missed. The store may not begin anew meanwhile."""
        world, part = self._world, self._world.parts[action.target]
        await part.ready.wait()
        name = self._chance.choice(sorted(file.name for file in world.data.glob("*.db")))
        aside, deaths = world.data / "aside", part.deaths
        aside.mkdir(exist_ok=True)
        begin = time.monotonic()
        signal_all(part.processes, signal.SIGKILL)
        for file in world.data.glob(f"{name}*"):
            file.rename(aside / file.name)
        if self._chance.random() < 0.5:
            (world.data / name).touch()
        await until(lambda: part.deaths > deaths, _STARTS)
        refusals = part.refusals
        await until(lambda: part.ready.is_set() or part.refusals > refusals, _STARTS)
        if part.ready.is_set():
            # It goes on with what it made, so that the run ends: what it had would not fit the others any more.
            what = f"without its {name}, {action.target} starts"
            self.found.append(Finding("began_anew", "", time.monotonic(), what))
        else:
            for file in aside.iterdir():
                file.replace(world.data / file.name)
        await part.ready.wait()
        return _one(kind, action.target, begin, time.monotonic(), set(), lasting=True)

    async def _stranger(self, action: Breakage, kind: str) -> DoneFault:
        """Has strangers begin messages that they never end. It breaks nothing, so it explains nothing."""
        part = self._world.parts[action.target]
        await part.ready.wait()
        begin, before = time.monotonic(), resident_bytes(part.pid)
        async with strangers(self._world.ports[action.target], METHODS[action.target]):
            kept = resident_bytes(part.pid) - before
        if kept > _KEPT:
            self.found.append(
                Finding("kept_for_strangers", "", begin, f"{action.target} keeps {kept >> 20} MiB more for strangers")
            )
        return DoneFault(kind, begin, time.monotonic(), back=begin)

    async def _cut(self, action: Breakage, kind: str) -> DoneFault:
        assert self._world.cut is not None
        begin = time.monotonic()
        await self._world.cut()
        return _one(kind, action.target, begin, time.monotonic(), set(), lasting=True)

    async def _host(self, action: Breakage, kind: str) -> DoneFault:
        """Breaks a host's wire; if the host is lost, also kills everything that runs on it."""
        world, host = self._world, action.target
        assert world.networks is not None
        broken = HostBreak(int(host.rpartition("-")[2]), APART if action.what == LOSE else action.what)
        there = parts_of(host)
        touched = {part: self._processes(part) for part in there}
        begin = time.monotonic()
        await world.networks.cut(broken)
        if action.what == LOSE:
            guards = [guard for part in there if part in WORKERS and (guard := world.guard(part))]
            signal_all([*guards, *(pid for part in there for pid in world.everything_under(part))], signal.SIGKILL)
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            await world.networks.heal(broken)
        if not there:  # the one with the stores: nothing goes on anywhere
            return _one(kind, "store", begin, end, set(), lasting=True)
        hits = [
            Hit(reach_of(part), begin, end, frozenset(touched[part] | self._processes(part)) - {0}) for part in there
        ]
        return DoneFault(kind, begin, end, tuple(hits))

    async def _wire(self, action: Breakage, kind: str) -> DoneFault:
        world, wire = self._world, action.target
        proxy = world.wires[wire]
        worker = wire.partition(":")[0]
        touched = self._processes(worker) if worker in WORKERS else set()
        begin = time.monotonic()
        _break(proxy, action.what)
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            proxy.heal()
        if worker in WORKERS:
            touched |= self._processes(worker)  # also those that were started meanwhile
        return _one(kind, wire, begin, end, touched, lasting=worker not in WORKERS)


def _one(kind: str, target: str, begin: float, end: float, pids: set[int], *, lasting: bool) -> DoneFault:
    """A fault that hit one target. `lasting`: nothing could go on before its end."""
    hit = Hit(reach_of(target), begin, end, frozenset(pids) - {0})
    return DoneFault(kind, begin, end, (hit,), end if lasting else 0.0)


def _break(proxy: FaultProxy, way: str) -> None:
    match way:
        case "delay":
            proxy.delay(0.15)
        case "reset":
            proxy.reset()
        case "half-open":
            proxy.hold()
        case "truncation":
            proxy.truncate()
        case "reply-cut":
            proxy.drop()
        case "refused":
            proxy.refuse()
        case _:
            raise ValueError(f"no way to break a wire is called {way!r}")


def _limit(pid: int, room: int | None) -> None:
    """Bounds the address space of a process to its present size and `room` MiB; None: no bound."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        limit = resource.RLIM_INFINITY if room is None else pages * resource.getpagesize() + (room << 20)
        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, hard))
    except (OSError, ProcessLookupError):
        pass  # it has ended
