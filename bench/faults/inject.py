"""Does one step of the plan to a world, and says what was done, when, and whom it may have touched."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from .functions import OUTAGE
from .plan import SERVER, WORKERS, Action, Item, Step
from .proxy import FaultProxy
from .verdict import QUEUE, STREAM, Fault
from .world import World, signal_all

#: Runs an item made for one fault; returns the process it ran in and when it did what it had to, or None.
RunItem = Callable[[Item], Awaitable[tuple[int, float] | None]]

#: Touches nothing that was accepted: only what is on its way in.
_SUBMISSION = frozenset({"submission"})
#: Room that a process gets beyond what it has, before its functions ask for more; and what they ask for, MiB.
_ROOM, _HUNGER = 64, 1024


class Injector:
    """`lease`: the longest lease of the run, seconds; what lasts is a share of it."""

    def __init__(self, world: World, lease: float, run_item: RunItem, seed: int) -> None:
        self._world = world
        self._lease = lease
        self._run_item = run_item
        self._chance = random.Random(f"inject {seed}")

    async def perform(self, step: Step) -> list[Fault]:
        """Does the step's actions at once; returns when what was broken is whole again."""
        done = await asyncio.gather(*(self._one(action, step.kind) for action in step.actions))
        found = [fault for fault in done if fault is not None]
        if len(found) > 1 and all(fault.pids for fault in found):
            # Both workers at once: nobody could go on before one of them was back.
            found = [fault._replace(lasting=True, end=min(one.end for one in found)) for fault in found]
        return found

    async def _one(self, action: Action, kind: str) -> Fault | None:
        do = {
            "kill": self._end,
            "term": self._end,
            "roll": self._roll,
            "outage": self._outage,
            "stop": self._stop,
            "exit": self._exit,
            "memory": self._memory,
            "disk": self._disk,
        }.get(action.what, self._wire)
        return await do(action, kind)

    def _sources(self, target: str) -> frozenset[str]:
        if target in ("gateway", "client:gateway", "gateway:store"):
            return _SUBMISSION
        if target == SERVER:
            return frozenset({QUEUE})
        return frozenset({STREAM}) if target in ("delay", "tailers:delay", "delay:store") else frozenset()

    def _executor(self) -> int | None:
        running = [pid for worker in WORKERS for pid in self._world.executors(worker)]
        return self._chance.choice(running) if running else None

    async def _end(self, action: Action, kind: str) -> Fault | None:
        world, target = self._world, action.target
        number = signal.SIGKILL if action.what == "kill" else signal.SIGTERM
        if target == "executor":
            pid = self._executor()
            if pid is None:
                return None
            begin = time.monotonic()
            signal_all([pid], number)
            return Fault(kind, begin, begin, frozenset({pid}))
        members = world.members(target)
        await asyncio.gather(*(world.parts[name].ready.wait() for name in members))
        pids = frozenset(world.everything_under(target)) if target in WORKERS else frozenset()
        deaths = {name: world.parts[name].deaths for name in members}
        begin = time.monotonic()
        signal_all([pid for name in members for pid in world.parts[name].processes], number)
        await asyncio.gather(*(world.up_again(name, count) for name, count in deaths.items()))
        # Of all but workers there is only one: nothing goes on before it was started again.
        return Fault(kind, begin, time.monotonic(), pids, self._sources(target), lasting=target not in WORKERS)

    async def _roll(self, action: Action, kind: str) -> Fault:
        """One after the other is ended and is back before the next."""
        begin = time.monotonic()
        for name in self._world.members(action.target):
            await self._end(Action("term", name), kind)
        return Fault(kind, begin, time.monotonic(), lasting=True)

    async def _outage(self, action: Action, kind: str) -> Fault:
        """Every function fails, for `length` seconds."""
        marker = self._world.journal / OUTAGE
        begin = time.monotonic()
        marker.touch()
        try:
            await asyncio.sleep(action.length)
        finally:
            end = time.monotonic()
            marker.unlink()
        return Fault(kind, begin, end, lasting=True)

    async def _stop(self, action: Action, kind: str) -> Fault | None:
        world, target = self._world, action.target
        touched: frozenset[int] = frozenset()
        lasting = True
        if target == "executor":
            pid = self._executor()
            if pid is None:
                return None
            stopped = [pid]
            touched = frozenset(stopped)
        elif target == "supervisor":
            worker = self._chance.choice(WORKERS)
            stopped = [world.parts[worker].pid]
            touched, lasting = frozenset(world.everything_under(worker)), False
        elif target in WORKERS:
            stopped = world.everything_under(target)
            touched, lasting = frozenset(stopped), False
        else:
            stopped = [world.parts[name].pid for name in world.members(target)]
        stopped = [pid for pid in stopped if pid]
        begin = time.monotonic()
        signal_all(stopped, signal.SIGSTOP)
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            signal_all(stopped, signal.SIGCONT)
        return Fault(kind, begin, end, touched, self._sources(target), lasting)

    async def _exit(self, action: Action, kind: str) -> Fault | None:
        source = self._chance.choice((QUEUE, STREAM))
        done = await self._run_item(Item(source, "exits_once", {}))
        return None if done is None else Fault(kind, done[1], done[1], frozenset({done[0]}))

    async def _memory(self, action: Action, kind: str) -> Fault | None:
        limited = [pid for worker in WORKERS for pid in self._world.executors(worker)]
        begin = time.monotonic()
        for pid in limited:
            _limit(pid, _ROOM)
        done = await self._run_item(Item(self._chance.choice((QUEUE, STREAM)), "hungry", {"megabytes": _HUNGER}))
        for pid in limited:
            _limit(pid, None)
        return None if done is None else Fault(kind, begin, time.monotonic(), frozenset(limited), lasting=True)

    async def _disk(self, action: Action, kind: str) -> Fault:
        begin = time.monotonic()
        self._world.disk.fill()
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            self._world.disk.make_room()
        return Fault(kind, begin, end, lasting=True)

    async def _wire(self, action: Action, kind: str) -> Fault:
        world, wire = self._world, action.target
        proxy = world.wires[wire]
        worker = wire.partition(":")[0]
        touched = frozenset(world.everything_under(worker)) if worker in WORKERS else frozenset()
        begin = time.monotonic()
        _break(proxy, action.what)
        try:
            await asyncio.sleep(action.length * self._lease)
        finally:
            end = time.monotonic()
            proxy.heal()
        return Fault(kind, begin, end, touched, self._sources(wire), lasting=worker not in WORKERS)


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
    """Bounds the address space of a process to what it has and `room` MiB; None: no bound."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        limit = resource.RLIM_INFINITY if room is None else pages * resource.getpagesize() + (room << 20)
        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, hard))
    except (OSError, ProcessLookupError):
        pass  # it has ended
