"""The processes of a simulated platform: the real parts, put together as assembly/ does, over simulated clocks, disks,
networks and executors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from ...assembly.embedded import STAMPED, EmbeddedStores
from ...assembly.environments import gateway_stores, tailers_environment
from ...assembly.remote import RemoteStores
from ...assembly.spool_file import SpoolFile, gateway_part
from ...delay_service.config import DelayConfig
from ...delay_service.mover import Mover
from ...delay_service.service import DelayServer, DelayService
from ...foundation.clock import Clock
from ...foundation.lifecycle import Group, Part, Reopening
from ...gateway.config import GatewayConfig
from ...gateway.server import GatewayServer
from ...model.gate import Gate
from ...model.lease import LeaseSizes
from ...model.limits import Quota, Snapshot
from ...model.retry import Retry
from ...runtime.config import WorkerConfig
from ...runtime.loader import LoadedFunctions
from ...runtime.worker import Worker
from ...scheduler.config import SchedulerConfig
from ...scheduler.server import SchedulerServer
from ...sdk.context import Context
from ...sdk.function import Function, function
from ...stores.config import StoresConfig
from ...stores.data_dir import DataDir
from ...stores.restored import NO_MARKS, Stamp
from ...stores.server import StoreServer
from ...stores.trusted_time import HOST, Trusted, TrustedTime, TrustedTimes
from ...tailers.config import TailerConfig
from ...tailers.registry import Environment
from ...tailers.resources import Parking
from ...tailers.supervisor import SCHEDULES, Tailers
from ...wire.delay import DelayClient
from .branches import branch, gathering
from .executor import SimExecutor
from .executor_inside import play, play_plainly
from .grower import BRANCH, GATHERING
from .host import here
from .overtime import GRACE as GRACE_AFTER_TIMEOUT
from .plan import Fault, LimitApplied, Plan
from .sqlite_disk import Disk, InlineFile
from .sqlite_shop import SHOP

SIZES = LeaseSizes()
#: Seconds between the attempts of a failed item, and attempts in all: short, so that a story ends.
DELAYS = (2.0, 7.0)
ATTEMPTS = 5
#: The one function, and the stream that the log's tailer reads. The queue's tailer is named as assembly/node names it.
FUNCTION, STREAM, QUEUE = "work", "orders", "queue"
#: The stream of what runs by the clock.
TIMED = str(SCHEDULES["name"])
#: Items that the stream's tailer looks ahead for urgent ones: less than a story has.
LOOK_AHEAD = 8
#: The addresses that several processes of a kind stand behind.
SCHEDULERS, GATEWAYS, DELAY_SERVICES = "schedulers:1", "gateways:8786", "delays:delay"
#: Seconds between looks of a relay.
RELAY_EVERY = 3.0
#: Seconds that a process gets to drain.
GRACE = 10.0


RETRY = Retry(backoff="list", delays=DELAYS, max_attempts=ATTEMPTS, max_crashes=3)


async def _work(n: int, context: Context) -> None:
    """Plays the plan's deed of item `n`."""
    await play(n, context)


async def _newer(n: int, context: Context, more: int) -> None:
    """The new version of the same, which wants an argument more."""
    await play(n, context)


def _plain(n: int, context: Context) -> None:
    """Plays the plan's deed of item `n` in a thread."""
    play_plainly(n, context)


@cache
def _declared(timeout: float, threads: bool = False, *, new: bool = False) -> Function[..., Any]:
    version = _newer if new else _plain if threads else _work
    return function(name=FUNCTION, timeout=timeout or None, retry=RETRY)(version)


#: The function of what trees have, and of what gathers in narrow ones.
_BRANCHES = function(name=BRANCH, retry=RETRY)(branch)
_GATHERING = function(name=GATHERING, retry=RETRY)(gathering)
#: The function of items, as clients that submit know it.
work = _declared(0.0)


def main(make: Callable[[], Part]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Makes the main task of a process that is one part, which runs until it is killed or asked to drain
    (Host.drain)."""

    async def run() -> None:
        host = here()
        host.draining = asyncio.Event()
        part = make()
        host.parts = _all_of(part)
        for each in host.parts:
            if isinstance(each, Reopening):
                each._clock = host.clock
        await part.start()
        await host.draining.wait()
        await part.drain(GRACE)
        await part.stop()

    return run


def _all_of(part: Part) -> list[Part]:
    return [each for inner in part._parts for each in _all_of(inner)] if isinstance(part, Group) else [part]


class _DataDir(DataDir):
    """A data directory that no other process can have: its machine has one process."""

    def open(self) -> None:
        """Does nothing: there is nothing to lock."""

    def close(self) -> None:
        """Does nothing: there is nothing to give back."""


class _Stamp(Stamp):
    """The stamp of the simulated files."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.names = STAMPED

    def refuse_gone(self) -> None:
        """Does nothing: no file goes missing here."""

    def moved(self) -> list[str]:
        """Names of the files that were put back."""
        return [f"{name}.db" for name in sorted(self._disk.put_back)]

    def opening(self, marks: Mapping[str, int], moved: Collection[str] = ()) -> None:
        """Does nothing: no file is marked here."""

    def opened(self, marks: Mapping[str, int] = NO_MARKS, moved: Collection[str] = ()) -> None:
        """Notes that the files that are not `moved` are as they should be from now on."""
        self._disk.put_back = {name for name in self._disk.put_back if f"{name}.db" in moved}

    def closed(self, marks: Mapping[str, int] = NO_MARKS, moved: Collection[str] = ()) -> None:
        """Does nothing: nobody changes the files unseen."""

    def forget(self) -> None:
        """Does nothing: nobody asks for that."""


class _TrustedTimes(TrustedTimes):
    """The trusted times, whose notes are on the simulated disk."""

    def __init__(self, disk: Disk, times: Mapping[str, TrustedTime], clock: Clock) -> None:
        super().__init__(Path("/simulated"), times, clock)
        self._disk = disk

    def _read(self) -> dict[str, tuple[str, Trusted]]:
        return dict(self._disk.trusted)

    def _write(self, notes: Mapping[str, tuple[str, Trusted]]) -> None:
        self._disk.trusted = dict(notes)


def _stores(plan: Plan) -> EmbeddedStores:
    data, disk, clock = Path("/simulated"), here().disk, here().clock
    config = StoresConfig(log_retention=plan.log_retention) if plan.log_retention else StoresConfig()
    stores = EmbeddedStores(data, config, clock, file=InlineFile, sizes=SIZES)
    stores.data_dir = _DataDir(data)
    stores._stamp = _Stamp(disk)
    stores._trusted = _TrustedTimes(disk, {HOST: stores.trusted}, clock)
    stores._on_disk = lambda: not disk.is_empty  # type: ignore[method-assign]
    stores.trusted._boot = cast(Any, stores.queue)._boot = f"boot {disk.boots}"
    here().writes.hear(stores)
    return stores


def _environment(plan: Plan, stores: EmbeddedStores | RemoteStores) -> Environment:
    environment = tailers_environment(stores, here().clock)
    if not plan.gateways:  # nobody registers functions, and nobody sets gates
        environment = replace(environment, control=None)
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
    here().writes.hear_owner(stores.ownership, here())
    tailers = here().tailers = Tailers(tailer_configs(plan), _environment(plan, stores), scheduler, parking, SIZES)
    return tailers


def node(plan: Plan, scheduler: str) -> Part:
    """Stores, delay service and tailers in one process."""
    stores = _stores(plan)
    service, parts = _delay(stores)
    tailers = _tailers(plan, stores, scheduler, service)
    return Group([stores, *parts, _store_server(stores), tailers])


def store(plan: Plan) -> Part:
    """The stores alone, served."""
    stores = _stores(plan)
    return Group([stores, _store_server(stores)])


def delay(address: str) -> Part:
    """The delay service over served stores."""
    stores = RemoteStores(address)
    return Group([stores, *_delay(stores)[1]])


def gateway(plan: Plan, store: str) -> Part:
    """A gateway over served stores."""
    stores, clock = RemoteStores(store), here().clock
    config = GatewayConfig(listen=f"{here().name}:8786", look_every=0)
    spool = SpoolFile(Path("/simulated"), config, own=False, clock=clock, file=InlineFile) if plan.spools else None
    return Group([stores, gateway_part(GatewayServer(config, gateway_stores(stores, spool), clock=clock), spool)])


class SimulatedTailers(Group):
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
    """A tailer of the queue, one of the stream, and where there is an application, one of its outbox."""
    log = {"kind": "log", "stream": STREAM}
    stream: dict[str, Any] = {"name": STREAM, "source": log, "function": FUNCTION, "key": {"record": True}}
    stream["order"] = plan.order
    if plan.order == "none":
        stream["window"] = {"detach_after": plan.detach_after}
    if plan.urgent:
        urgency = {"header": "priority", "default": "eventual"}
        stream |= {"priority": urgency, "look_ahead": LOOK_AHEAD}
        stream |= {"expires": {"header": "expires"}, "on_expiry": "dead_letter"}
    outbox = {"name": SHOP, "source": {"kind": "outbox", "database": "/simulated/shop.db", "poll": RELAY_EVERY}}
    configs = [{"name": QUEUE, "source": {"kind": "queue"}, "results": True}, stream]
    return [TailerConfig.model_validate(each) for each in (*configs, *([outbox] if plan.orders else []))]


def scheduler(plan: Plan) -> Part:
    """A scheduler with the quotas and gates of the plan."""
    gates = [fault for fault in plan.faults if fault.kind == "pause"]
    watch = partial(_watch, gates, plan.limits) if gates or plan.limits else None
    return SchedulerServer(SchedulerConfig(listen=f"{here().name}:1"), SIZES, watch, clock=here().clock)


async def _watch(gates: Sequence[Fault], limits: Sequence[LimitApplied], apply: Callable[[Snapshot], None]) -> None:
    """Applies gates and quotas as a watch on the gateway would: as they are, then again whenever they change."""
    version = 0
    changes = {time for fault in gates for time in (fault.at, fault.at + fault.seconds)}
    times = sorted(changes | {limit.at for limit in limits})
    while True:
        version += 1
        now = here().world.now
        shut = any(fault.at <= now < fault.at + fault.seconds for fault in gates)
        quotas = [Quota(FUNCTION, concurrency=limit.concurrency) for limit in limits if limit.at <= now][-1:]
        apply(Snapshot(version, [Gate(FUNCTION, "", "pause", "ann", "month end")] if shut else [], quotas))
        await asyncio.sleep(next((time - now for time in times if time > now), 3600.0) + 0.001)


def worker(plan: Plan, schedulers: Sequence[str]) -> Part:
    """A worker whose executors are simulated."""
    name, grace = here().name, GRACE_AFTER_TIMEOUT
    threads = {"threads": plan.slots} if plan.threads else {}
    config = WorkerConfig(
        executors=plan.executors, slots=plan.slots, **threads, isolated=1, name=name, timeout_grace=grace
    )
    new = plan.rolled and here().incarnation > 1
    functions = {FUNCTION: _declared(plan.timeout, plan.threads, new=new)} | ({BRANCH: _BRANCHES} if plan.trees else {})
    if any(tree.narrow for tree in plan.trees):
        functions[GATHERING] = _GATHERING
    loaded = LoadedFunctions(("simulated",), functions)
    registry = GATEWAYS if plan.gateways else None
    process = partial(SimExecutor, functions=loaded.functions)
    return Worker(config, loaded, schedulers, registry, SIZES, here().clock, process=process)
