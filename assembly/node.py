"""The node: the one process that owns the embedded stores, with everything that reads and writes them in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..delay_service.config import DelayConfig
from ..delay_service.service import DelayServer, DelayService
from ..foundation.certificates import own_fleet
from ..foundation.config import load
from ..foundation.lifecycle import Group
from ..gateway.config import GatewayConfig
from ..gateway.environment import DeclaredFiles, Neighbours
from ..gateway.replay_orders import ReplayOrders
from ..gateway.server import GatewayServer
from ..model.errors import TailraceError
from ..model.metrics import Sample
from ..model.overview import Overview
from ..model.reopening import Trouble
from ..stores.config import StoresConfig
from ..stores.engines import EMBEDDED
from ..stores.server import StoreServer
from ..stores.troubles import TroubleBoard
from ..tailers.config import TailerConfig
from ..tailers.membership import Membership
from ..tailers.replay.progress import ReplayProgress
from ..tailers.supervisor import Tailers
from ..tailers.tailer_files import files_of
from ..wire.health import TAILERS
from ..wire.scheduler import SchedulerClient
from .address_notices import Posting
from .certificate_watch import CertificateWatch
from .embedded import EmbeddedStores
from .environments import declared, gateway_stores, tailers_environment
from .movers import movers
from .private_process import run_dir_of
from .reloading import Reloading
from .settings import ConfigDirectory, merged
from .spool_file import SpoolFile, gateway_part, wanted

#: The tailer of a node's own queue, but for its source.
QUEUE_TAILER = {"name": "queue", "results": True}


def with_the_queue(configs: Sequence[TailerConfig]) -> list[TailerConfig]:
    """Tailers of a node: the configured ones, and one for the functions of the node's own queue that none of them
    reads."""
    queues = [config.source for config in configs if config.source["kind"] == "queue"]
    if any("functions" not in source for source in queues):  # it reads all of them
        return [*configs]
    dedicated = sorted({name for source in queues for name in source["functions"]})
    source = {"kind": "queue", "without": dedicated}
    return [TailerConfig.model_validate(QUEUE_TAILER | {"source": source}), *configs]


class Node:
    """The node: a Part. `listen` has the addresses of `gateway`, `store` and `delay`; `addresses` the actual ones.

    Order of starting: stores, then the servers over them, then the tailers; drained and stopped in reverse, so that
    items in flight are still settled while the tailers drain. With `watch` files that change are read again by itself.
    """

    def __init__(
        self,
        data: Path,
        directory: ConfigDirectory,
        *,
        scheduler: str,
        listen: dict[str, str],
        tailers: Sequence[Path] = (),
        heartbeat: float | None = None,
        watch: bool = False,
    ) -> None:
        configs = with_the_queue([load(path, TailerConfig) for path in [*directory.tailers(), *files_of(tailers)]])
        stores_config = merged(directory.read("stores.yaml", StoresConfig), listen=listen["store"])
        gateway_config = merged(directory.read("gateway.yaml", GatewayConfig), listen=listen["gateway"])
        delay_config = merged(directory.read("delay.yaml", DelayConfig), listen=listen["delay"])
        self.metrics_listen = gateway_config.metrics_listen
        stores = self._stores = EmbeddedStores(
            data,
            stores_config,
            sizes=directory.lease_sizes(heartbeat),
            reads_log=any(config.source["kind"] == "log" for config in configs),
            run_dir=run_dir_of(directory).path,
            carries_events=True,
            fleet=own_fleet(),
        )
        waits_in = None if stores_config.delay_queue == "none" else stores.delay_queue
        self._delay = DelayService(stores.delay_log, delay_config, queue=waits_in)
        self._tailers = Tailers(
            configs,
            tailers_environment(stores),
            scheduler,
            self._delay,
            directory.lease_sizes(heartbeat),
            on_health=self._tell_health,
            replays=stores.replays,
        )
        apart = stores_config.queue["engine"] != EMBEDDED
        spools = wanted(data, gateway_config, apart=apart)
        self._spool = SpoolFile(data, gateway_config, own=False, trusted=stores.trusted) if spools else None
        self._membership = Membership(stores.control, self._tailers)
        board = TroubleBoard(self._troubles)
        running = self._tailers.replays
        progress = ReplayProgress(stores.checkpoints, stores.ledger, stores.ownership, running.detail)
        self._reloading = Reloading(
            directory.path,
            tailers,
            declare=self._declare,
            reconfigure=self._reconfigure,
            watch=watch,
            check=self._check,
        )
        self._replays = ReplayOrders(stores.replays, progress, gateway_config.replays, running.wake)
        self._gateway = GatewayServer(
            gateway_config,
            gateway_stores(stores, self._spool),
            Neighbours(
                self._overview,
                self._tailers.audits,
                self._tailers,
                self._replays,
                board.all,
                AskedRunners(scheduler),
                self._reloading,
                self._membership.id,
            ),
            declared(directory),
        )
        self._delay_server = DelayServer(self._delay, delay_config)
        engines = stores.engines() | {"troubles": board}
        self._store_server = StoreServer(stores_config.listen, engines, stores_config.peers)
        self._parts = Group(
            [
                stores,
                *movers(stores, stores.delay_queue, delay_config),
                self._delay_server,
                self._store_server,
                gateway_part(self._gateway, self._spool),
                Posting(run_dir_of(directory), "gateway", f"data in {data.resolve()}", self._gateway),
                self._tailers,
                self._membership,
                self._reloading,
                CertificateWatch(),
            ]
        )

    async def samples(self) -> list[Sample]:
        """Metrics of all parts of the node now."""
        return await self._gateway.samples()

    async def _overview(self) -> Overview:
        """Numbers that the gateway cannot count by itself."""
        depths = await self._delay.depth()
        return Overview(
            tailers=self._tailers.overviews(),
            delay={depth.stream: depth.items for depth in depths},
            replays=await self._replays.overviews(),
            held_logs={name: (held.size, held.readers) for name, held in self._stores.held_logs.items()},
        )

    def _troubles(self) -> list[Trouble]:
        return [*self._parts.troubles(), *self._stores.troubles(), *self._reloading.troubles()]

    async def _declare(self, before: DeclaredFiles, now: DeclaredFiles) -> None:
        await self._gateway.declare(before, now)

    async def _check(self, configs: Sequence[TailerConfig]) -> None:
        """Raises ConfigError where these tailers cannot run here, beside the one of the queue."""
        self._tailers.check_names(with_the_queue(configs))
        if any(config.source["kind"] == "log" for config in configs):
            await self._stores.reads_log_now()

    async def _reconfigure(self, configs: Sequence[TailerConfig]) -> dict[str, str]:
        """Replaces the tailers by those of these files, beside the one of the queue."""
        return await self._tailers.reconfigure(with_the_queue(configs))

    async def _tell_health(self, tailer: str, well: bool) -> None:
        """Sets the health of a tailer at the gateway: tailers have no server of their own."""
        await self._gateway.set_health(f"{TAILERS}/{tailer}" if tailer else TAILERS, well)

    @property
    def address(self) -> str:
        """The address at which clients submit."""
        return self._gateway.address

    @property
    def addresses(self) -> dict[str, str]:
        """The address at which each part listens."""
        return {
            "gateway": self._gateway.address,
            "store": self._store_server.address,
            "delay": self._delay_server.address,
        }

    async def start(self) -> None:
        await self._parts.start()

    async def drain(self, timeout: float) -> None:
        await self._parts.drain(timeout)

    async def stop(self) -> None:
        await self._parts.stop()


#: Seconds that a scheduler gets to answer.
PATIENCE = 1.0


class AskedRunners:
    """Asks the scheduler at an address. Each call makes a client and closes it."""

    def __init__(self, scheduler: str) -> None:
        self._address = scheduler

    async def __call__(self, ids: Sequence[str]) -> Mapping[str, tuple[str, float]]:
        """Name of the worker that has an item, and when it was last heard of, by id; ids that no worker has are left
        out."""
        client = SchedulerClient(self._address)
        try:
            replies = await asyncio.gather(*(client.explain(id, PATIENCE) for id in ids), return_exceptions=True)
        finally:
            await client.close()
        found = {}
        for id, reply in zip(ids, replies, strict=True):
            if isinstance(reply, BaseException):
                if not isinstance(reply, TailraceError):
                    raise reply
            elif reply.worker:
                found[id] = (reply.worker, reply.heard_at)
        return found
