"""The platform of a run: every part is a process of its own, every wire between two of them goes through a proxy, and a
part that dies is started again at once, as a supervisor would.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...assembly.free_port import free_port
from ...assembly.parts import (
    DelaySettings,
    GatewaySettings,
    PartSettings,
    SchedulerSettings,
    StoreSettings,
    TailersSettings,
    WorkerSettings,
)
from ...assembly.processes import Child, PartFailed, spawn, stop
from ...sdk.async_client import AsyncClient
from ...stores.remote import RemoteLog
from ...wire.direct import SCHEME
from ..process import children, descendants
from .disk import SmallDisk
from .fed_streams import FedLog
from .feed import PATIENCE, FaultFeed
from .functions import FOLDER_VARIABLE
from .host_networks import HostNetworks
from .journal import Line
from .looks import Looks
from .owners_seen import SeenOwner, owners, tenures
from .path import Owners
from .plan import NODE, WIRES, WORKERS
from .proxy import FaultProxy
from .verdict import Expected, Finding

FUNCTIONS = "tailrace.bench.faults.functions"
STREAM = "faults"
PARTITIONS = 2

#: The wires to the scheduler without gRPC, as under `tailrace up`; the others use gRPC.
DIRECT = ("tailers:scheduler", "worker-2:scheduler")

#: Pauses before a part that died, or did not start, is started again; seconds.
_PAUSE, _LONG_PAUSE = 0.1, 0.5
#: Seconds that a part's drain may take.
_GRACE = 10.0

_FILES = {
    "leases.yaml": "heartbeat: {heartbeat}s\n",
    "gateway.yaml": "direct: false\n",  # clients keep to the wire that is broken
    "worker.yaml": "executors: 1\nisolated: 1\nsuspects: 6\nslots: 40\nthreads: 8\ngrace: 5s\n",
    "delay.yaml": "rungs: [200ms, 1s, 5s, 30s, 5m, 6h]\n",
}
_TAILERS = {
    "queue": "name: queue\nsource: {kind: queue}\n",
    # The window bounds the items that a takeover has to run alone (L14), and so the time that it takes.
    "faults": (
        f"name: faults\nsource: {{kind: log, stream: {STREAM}}}\n"
        "function: {header: function}\nwindow: {items: 60}\n"
    ),
}


class Restarted:
    """One part, started again whenever it ends. `ready` is set while it is up; `starts` are monotonic times."""

    def __init__(
        self,
        name: str,
        settings: PartSettings | None,
        environment: Mapping[str, str],
        log: Any,
        within: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._within = within
        self.child: Child | None = None
        self.ready = asyncio.Event()
        self.deaths = 0
        self.refusals = 0  # starts that came to nothing
        self._settings = None if settings is None else replace(settings, grace=_GRACE)
        self._environment = environment
        self._log = log
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Id of its process; 0 while there is none."""
        return self.child.pid if self.child is not None else 0

    @property
    def processes(self) -> list[int]:
        """Ids of processes that end with it when it is killed."""
        return [self.pid] if self.pid else []

    async def start(self) -> None:
        """Starts the part and keeps it running; returns when it is ready for the first time."""
        self._task = asyncio.create_task(self._keep(), name=f"keep-{self.name}")
        waiting = asyncio.create_task(self.ready.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _keep(self) -> None:
        assert self._settings is not None, "a part of another kind has a _keep of its own"
        while True:
            try:
                self.child = await spawn(self._settings, self._environment, stderr=self._log, within=self._within)
            except PartFailed:
                self.refusals += 1
                await asyncio.sleep(_LONG_PAUSE)
                continue
            self.ready.set()
            while self.child.process.poll() is None:
                await asyncio.sleep(0.02)
            self.ready.clear()
            self.deaths += 1
            await stop(self.child, 0)
            await asyncio.sleep(_PAUSE)

    async def lose(self) -> None:
        """Stops restarting the part, whatever ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.ready.clear()

    async def gone(self) -> None:
        """Waits until a part that was killed is gone."""
        if self.child is not None:
            await stop(self.child, 0)

    async def end(self, grace: float) -> None:
        """Ends the part for good."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError):
                signal_all(descendants(self.child.pid), signal.SIGCONT)
            await stop(self.child, grace)


def signal_all(pids: list[int] | frozenset[int], number: int) -> None:
    """Sends a signal to each process that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class FaultWorld:
    """The processes of a run. Invariant: between `start` and `stop` every part is running or about to be started again.

    folder     holds config, the data of the stores, journals and the parts' logs
    heartbeat  sizes the leases, seconds

    tailer_parts  the processes that run the tailers' files, each all of them
    partitions    number of the stream's partitions
    group_time    seconds until a dead tailer's share is given to another, before leases count
    build_up      seconds that a step's items are put in before its fault
    in_flight     number of streams' items that the tailers may have out at any moment; 0: that is not judged
    address       the address on which parts and wires listen
    direct        the wires over which sessions go without gRPC
    """

    tailer_parts: tuple[str, ...] = ("tailers",)
    partitions = PARTITIONS
    group_time = 0.0
    build_up = 0.0
    in_flight = 0
    address = "127.0.0.1"
    direct: tuple[str, ...] = DIRECT
    #: Cuts the power of the machine that the parts are on, and has it back; only where there is such a disk.
    cut: Callable[[], Awaitable[None]] | None = None
    #: The hosts that the parts are on; None: they are on this machine.
    networks: HostNetworks | None = None

    def __init__(self, folder: Path, heartbeat: float, tailers: Mapping[str, str] = _TAILERS) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.journal = folder / "journal"
        self.heartbeat = heartbeat
        self.parts: dict[str, Restarted] = {}
        self.wires: dict[str, FaultProxy] = {}
        self.ports: dict[str, str] = {}
        self._tailers = tailers
        self._logs: list[Any] = []
        self.disk = SmallDisk(self.data)
        self._owners: Looks[SeenOwner] | None = None

    async def start(self) -> None:
        """Starts every part; returns when all are ready."""
        config = self._configured()
        for part in ("store", "gateway", "delay", "scheduler", "direct"):
            self.ports[part] = f"{self.address}:{free_port(self.address)}"
        for wire in WIRES:
            target = "direct" if wire in self.direct else wire.partition(":")[2]
            proxy = self.wires[wire] = FaultProxy(self.ports[target], f"{self.address}:0")
            await proxy.start()
        through = {wire: (SCHEME if wire in self.direct else "") + proxy.address for wire, proxy in self.wires.items()}
        ports = self.ports
        gateway = GatewaySettings(config=config, listen=ports["gateway"], store=through["gateway:store"])
        delay = DelaySettings(config=config, listen=ports["delay"], store=through["delay:store"])
        tailers = TailersSettings(
            config=config,
            files=tuple(self.folder / "tailers" / f"{name}.yaml" for name in self._tailers),
            scheduler=through["tailers:scheduler"],
            delay=through["tailers:delay"],
            store=through["tailers:store"],
        )
        direct = ports["direct"] if self.direct else ""
        scheduler = SchedulerSettings(config=config, listen=ports["scheduler"], direct=direct, gateway=ports["gateway"])
        self._add("store", StoreSettings(config=config, listen=ports["store"], data=self.data))
        await self.parts["store"].start()
        self._owners = Looks(partial(owners, self.ports["store"]))  # past the wires, so that no fault blinds it
        await self._owners.start()
        for each in (gateway, delay, scheduler):
            self._add(each.name, each)
        for name in self.tailer_parts:
            self._add(name, tailers)
        for name in WORKERS:
            to = (through[f"{name}:scheduler"],)
            self._add(
                name, WorkerSettings(config=config, modules=(FUNCTIONS,), schedulers=to, gateway=ports["gateway"])
            )
        await asyncio.gather(*(part.start() for name, part in self.parts.items() if name != "store"))

    def _configured(self) -> Path:
        config, tailers = self.folder / "config", self.folder / "tailers"
        for folder in (config, tailers, self.journal, self.data, self.folder / "logs"):
            folder.mkdir(parents=True, exist_ok=True)
        for name, text in _FILES.items():
            (config / name).write_text(text.format(heartbeat=self.heartbeat))
        for name, text in self._tailers.items():
            (tailers / f"{name}.yaml").write_text(text)
        return config

    def _add(self, name: str, settings: PartSettings) -> None:
        log = (self.folder / "logs" / f"{name}.log").open("ab")
        self._logs.append(log)
        environment = {FOLDER_VARIABLE: str(self.journal), **self.environment(name)}
        self.parts[name] = Restarted(name, settings, environment, log, self.within(name))

    def environment(self, part: str) -> Mapping[str, str]:
        """Further environment variables of a part."""
        return {}

    def within(self, part: str) -> Sequence[str]:
        """Words before a part's own command."""
        return ()

    async def stop(self) -> None:
        """Ends everything, drained where possible."""
        for proxy in self.wires.values():
            proxy.heal()
        if self._owners is not None:
            await self._owners.stop()
        for names in (("gateway", *self.tailer_parts), WORKERS, ("scheduler", "delay"), ("store",)):
            await asyncio.gather(*(self.parts[name].end(5.0) for name in names if name in self.parts))
        for proxy in self.wires.values():
            await proxy.stop()
        for log in self._logs:
            log.close()
        self.disk.unmount()

    # Targets.

    def members(self, target: str) -> list[str]:
        """Names of the parts that a target means."""
        if target == "tailers":
            return list(self.tailer_parts)
        return list(NODE) if target == "node" else [target]

    # The calls of the run.

    def feed(self) -> FaultFeed:
        """The feed that puts items in."""
        client = AsyncClient(self.wires["client:gateway"].address, timeout=PATIENCE)
        places = [f"{STREAM}/{partition}" for partition in range(self.partitions)]
        return FaultFeed(client, FedLog(RemoteLog(self.ports["store"]), STREAM, places))

    async def settled(self, feed: FaultFeed) -> list[Finding]:
        """Waits for facts that must become known outside when everything has ended. Returns findings about those that
        do not."""
        return []

    def judged(self, lines: Sequence[Line], expected: Mapping[str, Expected]) -> tuple[list[Finding], dict[str, Any]]:
        """Results of the run beside its journal: findings, and figures by name."""
        return [], {}

    def owners(self) -> Owners:
        """The processes that owned streams, over time."""
        seen = [] if self._owners is None else self._owners.seen
        (self.folder / "owners.txt").write_text("".join(f"{at:.2f} {place} {who}\n" for at, place, who in seen))
        return tenures(seen)

    # Processes.

    def executors(self, worker: str) -> list[int]:
        """Ids of the processes in which a worker runs functions, without processes that those started."""
        pid = self.parts[worker].pid
        return children(pid) if pid else []

    def guard(self, worker: str) -> int:
        """Id of the process that ends processes which a worker leaves; 0 while there is none."""
        child = self.parts[worker].child
        return child.process.pid if child is not None and child.process.pid != child.pid else 0

    def everything_under(self, part: str) -> list[int]:
        """Ids of a part's process and all below it."""
        pid = self.parts[part].pid
        return descendants(pid) if pid else []

    async def up_again(self, part: str, deaths: int) -> None:
        """Waits until a part that had died so often has died again and is ready."""
        restarted = self.parts[part]
        while restarted.deaths <= deaths or not restarted.ready.is_set():
            await asyncio.sleep(0.02)


async def until(done: Callable[[], bool], seconds: float) -> bool:
    """Waits for a change that other processes make. False: it took too long."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True
