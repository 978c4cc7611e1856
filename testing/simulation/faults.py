"""Makes a plan's faults happen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from .host import Host
from .journal import Journal
from .kernel import Kernel
from .network import SimNetwork
from .plan import Fault, Plan
from .sqlite_disk import Disk
from .world import World

#: The files of the stores.
FILES = ("queue", "log", "delay", "state")
#: True seconds for which orphans of a killed supervisor run on, usually: until they see that their sockets are closed.
ORPHANS = 0.005


class Faults:
    """The faults of one world."""

    def __init__(
        self, plan: Plan, world: World, hosts: Mapping[str, Host], network: SimNetwork, journal: Journal
    ) -> None:
        self._plan = plan
        self._world = world
        self._hosts = hosts
        self._network = network
        self._journal = journal
        self._copies: dict[str, bytes] = {}
        self._copied = 0.0
        self.restoring: Callable[[], None] = lambda: None  # told before files are put back
        self.restored: Callable[[str, float], None] = lambda file, copied: None  # told of each file, and of when
        for host in hosts.values():
            host.ended = lambda host=host: self._ended(host)  # type: ignore[misc]

    def begin(self) -> None:
        """Sets the alarm for each fault, and for the calm after them."""
        for fault in self._plan.faults:
            self._world.at(fault.at, self._strike, fault)
        self._world.at(self._plan.calm, self._calm)

    def _calm(self) -> None:
        self._world.say("", "the faults cease")
        self._network.heal()
        for host in self._hosts.values():
            host.disk.troubles.clear()
        for host in self._hosts.values():
            host.kill_at = None
            host.thaw()
            for kernel in list(host.processes):
                kernel.thaw()
            if not host.up and host.name != "client":
                host.start()

    def _ended(self, host: Host) -> None:
        """Tells the network that a process is gone, and soon after that the processes that it had started."""
        self._network.died(host, silent=host.silent)
        for kernel in list(host.processes):
            delay = host.orphans if host.orphans is not None else ORPHANS * self._world.random.random()
            self._world.after(delay, self._orphan, kernel)

    def _orphan(self, kernel: Kernel) -> None:
        if kernel.alive and not kernel.frozen:
            kernel.die(1)
        elif kernel.alive:
            self._world.after(0.1, self._orphan, kernel)

    def _strike(self, fault: Fault) -> None:
        world, network = self._world, self._network
        host = self._hosts.get(fault.host)
        world.say(fault.host, f"FAULT {fault}")
        world.count(f"fault: {fault.kind}")
        match fault.kind:
            case "cut":
                network.cut(fault.host, fault.other, fault.seconds)
            case "both":
                network.cut(fault.host, fault.other, fault.seconds)
                network.cut(fault.other, fault.host, fault.seconds)
            case "reset":
                network.reset(fault.host, fault.other)
            case "weather":
                self._weather(fault)
            case "zombie":
                network.keep_back(fault.host, fault.other, fault.amount, fault.seconds)
            case "steer":
                network.steer(fault.host)
            case "outage":
                self._journal.broken_until = world.now + fault.seconds
            case _ if host is not None:
                self._on_host(fault, host)

    def _weather(self, fault: Fault) -> None:
        weather = self._network.weather
        self._network.weather = replace(weather, **{fault.what: fault.amount})
        self._world.after(fault.seconds, self._clear, fault.what)

    def _clear(self, what: str) -> None:
        self._network.weather = replace(self._network.weather, **{what: 0.0})

    def _on_host(self, fault: Fault, host: Host) -> None:
        world = self._world
        match fault.kind:
            case "kill":
                host.silent = fault.number > 0
                host.orphans = fault.amount or None
                host.kill()
                world.after(fault.seconds, host.start)
            case "freeze":
                host.freeze()
                world.after(fault.seconds, host.thaw)
            case "drain":
                host.drain()
                world.after(max(fault.seconds, 15.0), self._again, host)
            case "jump":
                if not host.up:
                    world.count("clock set while down")
                host.clock.jump(fault.amount)
                self._journal.jumped += abs(fault.amount)
            case "point":
                host.kill_at = (fault.what, host.points.get(fault.what, 0) + max(1, fault.number))
                world.after(fault.seconds, self._after_point, host)
            case "executors":
                self._on_executor(fault, host)
            case "busy" | "full" | "writer" | "power" | "clone":
                self._on_files(fault, host)
            case "copy":
                self._copied = world.now
                self._copies = {file: host.disk.copy(file) for file in fault.what.split()}
            case "restore":
                host.kill()
                self.restoring()
                for file, copy in self._copies.items():
                    host.disk.restore(file, copy)
                    self.restored(file, self._copied)
                world.after(fault.seconds, host.start)

    def _on_files(self, fault: Fault, host: Host) -> None:
        troubles, until = host.disk.troubles, self._world.now + fault.seconds
        if fault.kind == "power":
            host.boot_after = fault.seconds
            troubles.update(dict.fromkeys(FILES, ("power", math.inf)))
        elif fault.kind == "clone":
            self._clone(fault, host, self._hosts[fault.other].disk)
        elif fault.kind == "writer":
            troubles[fault.what] = ("ends after" if fault.number else "ends before", until)
        else:
            troubles[fault.what] = (fault.kind, until)

    def _clone(self, fault: Fault, host: Host, other: Disk) -> None:
        host.kill()
        host.disk.clone(other)
        if fault.number:
            other.empty()
        self._world.after(fault.seconds, host.start)

    def _again(self, host: Host) -> None:
        host.kill("its drain is over")
        host.start()

    def _after_point(self, host: Host) -> None:
        host.kill_at = None
        if not host.up:
            host.start()

    def _on_executor(self, fault: Fault, host: Host) -> None:
        kernels = list(host.processes)
        if not kernels:
            return
        kernel: Kernel = kernels[fault.number % len(kernels)]
        if fault.what == "kill":
            kernel.die(-9)
        elif fault.what == "stall":
            kernel.stall = fault.seconds
        else:
            for each in kernels if fault.what == "all" else [kernel]:
                each.freeze()
                self._world.after(fault.seconds, each.thaw)
            if fault.what == "all":
                host.freeze()
                self._world.after(fault.seconds, host.thaw)
