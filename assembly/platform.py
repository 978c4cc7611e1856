"""The whole platform as child processes: a node, a scheduler, a worker. `up`, demo, bench and tests use it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..foundation.run_dir import VARIABLE
from ..model.address import read_address
from ..model.errors import ConfigError
from ..scheduler.config import AUTO
from ..wire.direct import SCHEME
from .free_port import free_port
from .parts import NodeSettings, PartSettings, SchedulerSettings, WorkerSettings
from .private_process import run_dir_of
from .processes import Child, KeptProcess
from .running import GRACE
from .settings import ConfigDirectory

#: Seconds that a node has to stop in order: a tailer bounds its last writes with 5 s, a group its last commit with 3.
STOP_WITHIN = 8.0
#: Seconds that a worker needs after its grace to stop the remaining runs and tell the other parts that they are lost.
LAST_WORDS = 5.0
#: The listeners, and the address of each if nobody says.
LISTENING = ("gateway", "scheduler", "direct", "store", "delay")
ANY_PORT = "127.0.0.1:0"


class Platform:
    """Starts the three processes, keeps them running, and ends them. A Part (start, drain, stop).

    data         the folder of the embedded stores
    functions    modules or files with functions; empty: no worker is started
    config       a configuration directory; None: defaults
    tailers      more tailer files
    heartbeat    seconds; None: as configured
    environment  more environment variables for the worker
    ports        the listening addresses by part (`gateway`, `scheduler`, `store`, `delay`, and `direct`, where node and
                 worker attach to the scheduler without gRPC; empty: they use gRPC); a missing one takes any free port
                 of loopback, and so does `direct` when it is `auto`
    on_event     called with each start and death, for people: (part, "ready" | "died", detail)
    """

    def __init__(
        self,
        data: Path,
        functions: Sequence[str] = (),
        config: Path | None = None,
        tailers: Sequence[Path] = (),
        heartbeat: float | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        ports: Mapping[str, str] | None = None,
        worker: Mapping[str, Any] | None = None,
        watch: bool = False,
        on_event: Callable[[str, str, str], None] = lambda part, event, detail: None,
    ) -> None:
        self._config = None if config is None else config.resolve()
        self._heartbeat = heartbeat
        self._data = data.resolve()
        self._watch = watch
        self._run_dir = run_dir_of(ConfigDirectory(config))
        self._secret = ""
        self._functions = tuple(functions)
        self._tailers = tuple(path.resolve() for path in tailers)
        self._ports = dict.fromkeys(LISTENING, ANY_PORT) | dict(ports or {})
        if self._ports["direct"] == AUTO:
            self._ports["direct"] = ANY_PORT
        self._worker_changes = dict(worker or {})
        usual = WorkerSettings(config=self._config, modules=(), schedulers=(), changes=self._worker_changes)
        self._grace = usual.drain_time
        self._on_event = on_event
        self._scheduler = self._kept("scheduler", self._scheduler_settings)
        self._node = self._kept("node", self._node_settings)
        self._worker = self._kept("worker", self._worker_settings, environment)

    def _kept(
        self, name: str, settings: Callable[[], PartSettings], environment: Mapping[str, str] | None = None
    ) -> KeptProcess:
        def enterable() -> PartSettings:
            with contextlib.suppress(ConfigError):  # the part says it better
                self._run_dir.restored(self._secret)  # parts that are started again know those that go on
            return settings()

        where = {VARIABLE: str(self._run_dir.path), **(environment or {})}
        return KeptProcess(name, enterable, where, on_ready=self._ready, on_death=self._died)

    def _ready(self, child: Child) -> None:
        for part, address in child.ready["addresses"].items():
            self._ports[part] = address  # a part that is started again keeps its address
        later = "(functions: once the worker is ready)" if child.name == "node" and self._awaits_worker else ""
        self._on_event(child.name, "ready", f"pid {child.pid} {child.ready['address']} {later}".rstrip())

    @property
    def _awaits_worker(self) -> bool:
        return bool(self._functions) and self._worker.child is None

    def _died(self, name: str, why: str) -> None:
        self._on_event(name, "died", why)

    def _node_settings(self) -> NodeSettings:
        return NodeSettings(
            config=self._config,
            heartbeat=self._heartbeat,
            grace=self._longer_grace,
            data=self._data,
            scheduler=self._attach_address,
            gateway=self._ports["gateway"],
            store=self._ports["store"],
            delay=self._ports["delay"],
            tailers=self._tailers,
            watch=self._watch,
        )

    def _scheduler_settings(self) -> SchedulerSettings:
        return SchedulerSettings(
            config=self._config,
            heartbeat=self._heartbeat,
            grace=self._longer_grace,
            listen=self._ports["scheduler"],
            direct=self._ports["direct"],
            gateway=self._ports["gateway"],
        )

    def _worker_settings(self) -> WorkerSettings:
        return WorkerSettings(
            config=self._config,
            heartbeat=self._heartbeat,
            grace=self._grace,
            modules=self._functions,
            schedulers=(self._attach_address,),
            gateway=self._ports["gateway"],
            changes=self._worker_changes,
        )

    @property
    def _longer_grace(self) -> float:
        """Seconds of grace for the parts that hear how the worker's runs end: longer than the worker's."""
        return max(GRACE, self._grace + LAST_WORDS)

    @property
    def _attach_address(self) -> str:
        """The address at which the node's tailers and the worker attach: they run on the scheduler's machine."""
        return f"{SCHEME}{self._ports['direct']}" if self._ports["direct"] else self._ports["scheduler"]

    @property
    def gateway_address(self) -> str:
        """The address at which clients submit."""
        return self._ports["gateway"]

    @property
    def scheduler_address(self) -> str:
        """The address at which tailers and workers of other machines attach, and at which callers ask."""
        return self._ports["scheduler"]

    @property
    def direct_address(self) -> str:
        """The address at which tailers and workers of this machine attach without gRPC; empty: none."""
        return self._ports["direct"]

    @property
    def store_address(self) -> str:
        """The address at which the embedded stores are served to other processes."""
        return self._ports["store"]

    @property
    def delay_address(self) -> str:
        """The address at which items are parked."""
        return self._ports["delay"]

    def pids(self) -> dict[str, int]:
        """Process id of each running part."""
        kept = (self._node, self._scheduler, self._worker)
        return {each.name: each.child.pid for each in kept if each.child is not None}

    def worker_pids(self) -> list[int]:
        """Process id of the worker's supervisor, if one runs."""
        return [pid for name, pid in self.pids().items() if name == "worker"]

    async def start(self) -> None:
        """Starts all parts; returns when each is ready. Raises PartFailed, having stopped the others."""
        try:
            self._secret = self._run_dir.open().secret
            # The node's address must be known to the scheduler, and the scheduler's to the node: the node dials late.
            await self._fix_addresses()
            await self._node.start()
            await asyncio.gather(self._scheduler.start(), *([self._worker.start()] if self._functions else []))
        except BaseException:
            await self.stop()
            raise

    async def _fix_addresses(self) -> None:
        """Chooses the free ports now, so that parts that die come back under the address the others know."""
        for part, address in self._ports.items():
            chosen = read_address(address, lowest_port=0)
            if chosen is not None and chosen.port == 0:
                self._ports[part] = f"{chosen.host}:{free_port(chosen.host)}"

    async def drain(self, timeout: float) -> None:
        """Ends gracefully: tailers first take in nothing more, then the worker finishes, then the scheduler goes. Each
        gets its configured time and a margin, but no more than `timeout` seconds."""
        await asyncio.gather(self._worker.drain(timeout), self._node.drain(timeout))
        await self._scheduler.drain(timeout)

    async def stop(self) -> None:
        """Ends everything now, without waiting for items that are out. The node goes first, in order: its tailers write
        checkpoints of settled items, and tell a consumer group, whose offsets may be a second behind."""
        await self._node.stop(STOP_WITHIN)
        await asyncio.gather(self._worker.stop(), self._scheduler.stop())
        self._run_dir.close()
