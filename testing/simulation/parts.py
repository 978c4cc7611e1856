"""The processes of a simulated platform: the real parts, put together as assembly/ does, over simulated clocks, disks,
networks and executors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...assembly.embedded import EmbeddedStores
from ...assembly.environments import gateway_stores, tailers_environment
from ...assembly.remote import RemoteStores
from ...delay_service.config import DelayConfig
from ...delay_service.mover import Mover
from ...delay_service.service import DelayServer, DelayService
from ...gateway.config import GatewayConfig
from ...gateway.server import GatewayServer
from ...runtime.config import WorkerConfig
from ...runtime.loader import Loaded
from ...runtime.worker import Worker
from ...scheduler.config import SchedulerConfig
from ...scheduler.server import SchedulerServer
from ...sdk.function import function
from ...sdk.lifecycle import Group, Part
from ...sdk.model.lease import LeaseSizes
from ...sdk.model.limits import Gate, Snapshot
from ...sdk.model.retry import Retry
from ...sdk.wire.delay import DelayClient
from ...stores.config import StoresConfig
from ...stores.data_dir import DataDir
from ...stores.restored import Stamp
from ...stores.server import StoreServer
from ...tailers.config import TailerConfig
from ...tailers.leaving.parking import Parking
from ...tailers.registry import Environment
from ...tailers.supervisor import SCHEDULES, Tailers
from .executor import SimExecutor
from .host import here
from .plan import Fault, Plan
from .sqlite_disk import Disk, InlineFile

SIZES = LeaseSizes()
#: Seconds between the attempts of a failed item, and attempts in all: short, so that a story ends.
DELAYS = (2.0, 7.0)
ATTEMPTS = 5
#: The one function, and the stream that the log's tailer reads. The queue's tailer is named as assembly/node names it.
FUNCTION, STREAM, QUEUE = "work", "orders", "queue"
#: The stream of what runs by the clock.
TIMED = str(SCHEDULES["name"])
#: How far the stream's tailer looks for what is urgent, items: less than a story has.
LOOK_AHEAD = 8
#: The addresses that several processes of a kind stand behind.
SCHEDULERS, GATEWAYS, DELAY_SERVICES = "schedulers:1", "gateways:8786", "delays:delay"
#: Seconds that a process gets to drain.
GRACE = 10.0


@function(name=FUNCTION, retry=Retry(backoff="list", delays=DELAYS, max_attempts=ATTEMPTS, max_crashes=3))
async def work(n: int) -> None:
    """What it does stands in the plan."""


def main(make: Callable[[], Part]) -> Callable[[], Coroutine[Any, Any, None]]:
    """The main task of a process that is one part, until it is killed or asked to drain (Host.drain)."""

    async def run() -> None:
        host = here()
        host.draining = asyncio.Event()
        part = make()
        await part.start()
        await host.draining.wait()
        await part.drain(GRACE)
        await part.stop()

    return run


class _DataDir(DataDir):
    """A directory that nobody else can have: its machine has one process."""

    def open(self) -> None:
        """Nothing to lock."""

    def close(self) -> None:
        """Nothing to give back."""


class _Stamp(Stamp):
    """What is known of the simulated files."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def moved(self) -> list[str]:
        """Those that were put back."""
        return [f"{name}.db" for name in sorted(self._disk.put_back)]

    def opened(self) -> None:
        """They are as they should be from now on."""
        self._disk.put_back.clear()

    def closed(self) -> None:
        """Nobody changes them unseen."""

    def forget(self) -> None:
        """Nobody asks for that."""


def _stores() -> EmbeddedStores:
    data = Path("/simulated")
    stores = EmbeddedStores(data, StoresConfig(), here().clock, file=InlineFile, sizes=SIZES)
    stores.data_dir = _DataDir(data)
    stores._stamp = _Stamp(here().disk)
    return stores


def _environment(plan: Plan, stores: EmbeddedStores | RemoteStores) -> Environment:
    environment = tailers_environment(stores, here().clock)
    return environment if plan.schedules else replace(environment, schedules=None)


def _delay(stores: EmbeddedStores | RemoteStores) -> tuple[DelayService, list[Part]]:
    clock = here().clock
    config = DelayConfig(listen=f"{here().name}:delay")
    service = DelayService(stores.delay_log, config, clock)
    mover = Mover(stores.delay_log, stores.checkpoints, stores.ownership, config, clock)
    return service, [mover, DelayServer(service, config)]


def _store_server(stores: EmbeddedStores) -> Part:
    return StoreServer(f"{here().name}:store", stores.engines())


def _tailers(plan: Plan, stores: EmbeddedStores | RemoteStores, scheduler: str, parking: Parking) -> Tailers:
    tailers = here().tailers = Tailers(tailer_configs(plan), _environment(plan, stores), scheduler, parking, SIZES)
    return tailers


def node(plan: Plan, scheduler: str) -> Part:
    """Stores, delay service and tailers in one process."""
    stores = _stores()
    service, parts = _delay(stores)
    tailers = _tailers(plan, stores, scheduler, service)
    return Group([stores, *parts, _store_server(stores), tailers])


def store() -> Part:
    """The stores alone, served."""
    stores = _stores()
    return Group([stores, _store_server(stores)])


def delay(address: str) -> Part:
    """The delay service over served stores."""
    stores = RemoteStores(address)
    return Group([stores, *_delay(stores)[1]])


def gateway(store: str) -> Part:
    """A gateway over served stores."""
    stores = RemoteStores(store)
    config = GatewayConfig(listen=f"{here().name}:8786", look_every=0)
    return Group([stores, GatewayServer(config, gateway_stores(stores), clock=here().clock)])


class SeparateTailers(Group):
    """Tailers over served stores, with the delay service at its address. A Part."""

    def __init__(self, plan: Plan, scheduler: str, store: str, delay: str) -> None:
        stores = RemoteStores(store)
        self._client = DelayClient(delay)
        super().__init__([stores, _tailers(plan, stores, scheduler, self._client)])

    async def stop(self) -> None:
        """Ends the client too."""
        await super().stop()
        await self._client.close()


def tailer_configs(plan: Plan) -> list[TailerConfig]:
    """A tailer of the queue and one of the stream."""
    log = {"kind": "log", "stream": STREAM}
    stream: dict[str, Any] = {"name": STREAM, "source": log, "function": FUNCTION, "key": {"record": True}}
    stream["order"] = plan.order
    if plan.order == "none":
        stream["window"] = {"detach_after": plan.detach_after}
    if plan.urgent:
        urgency = {"header": "priority", "default": "eventual"}
        stream |= {"priority": urgency, "look_ahead": LOOK_AHEAD}
        stream |= {"expires": {"header": "expires"}, "on_expiry": "dead_letter"}
    return [
        TailerConfig.model_validate({"name": QUEUE, "source": {"kind": "queue"}, "results": True}),
        TailerConfig.model_validate(stream),
    ]


def scheduler(plan: Plan) -> Part:
    """A scheduler without quotas, and with the gates that are in the plan."""
    gates = [fault for fault in plan.faults if fault.kind == "pause"]
    watch = partial(_watch, gates) if gates else None
    return SchedulerServer(SchedulerConfig(listen=f"{here().name}:1"), SIZES, watch, clock=here().clock)


async def _watch(gates: Sequence[Fault], apply: Callable[[Snapshot], None]) -> None:
    """What a watch on the gateway says: the gates as they are, then again whenever they change."""
    version = 0
    times = sorted({time for fault in gates for time in (fault.at, fault.at + fault.seconds)})
    while True:
        version += 1
        now = here().world.now
        shut = any(fault.at <= now < fault.at + fault.seconds for fault in gates)
        apply(Snapshot(version, [Gate(FUNCTION, "", "pause", "ann", "month end")] if shut else []))
        await asyncio.sleep(next((time - now for time in times if time > now), 3600.0) + 0.001)


def worker(plan: Plan, schedulers: Sequence[str]) -> Part:
    """A worker whose executors are simulated."""
    config = WorkerConfig(executors=plan.executors, slots=plan.slots, isolated=1, name=here().name)
    loaded = Loaded(("simulated",), {FUNCTION: work})
    registry = GATEWAYS if plan.gateways else None
    return Worker(config, loaded, schedulers, registry, SIZES, here().clock, process=SimExecutor)
