"""Parts that run apart from the embedded stores: the same objects as in the node, over the stores served by another
process. Only constructors differ (law 11).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import grpc

from ..delay_service.config import DelayConfig
from ..delay_service.service import DelayServer, DelayService
from ..foundation.certificates import own_fleet
from ..foundation.clock import SYSTEM_CLOCK
from ..foundation.config import load
from ..foundation.lifecycle import Group
from ..gateway.config import GatewayConfig
from ..gateway.environment import DeclaredFiles, Neighbours
from ..gateway.replay_orders import ReplayOrders
from ..gateway.rules.alerts import of_a_tailer
from ..gateway.server import GatewayServer
from ..model import metrics
from ..model.errors import ConfigError
from ..model.metrics import Sample, of_tailers
from ..model.overview import Overview
from ..model.reopening import Trouble
from ..stores.config import StoresConfig
from ..stores.server import StoreServer
from ..stores.troubles import TroubleBoard
from ..tailers.config import TailerConfig
from ..tailers.membership import Membership
from ..tailers.replay.progress import ReplayProgress
from ..tailers.supervisor import Tailers
from ..tailers.tailer_files import files_of
from ..wire.channel import serve
from ..wire.delay import DelayClient
from ..wire.health import TAILERS, Health
from .address_notices import Posting
from .certificate_watch import CertificateWatch
from .embedded import EmbeddedStores
from .environments import declared, gateway_stores, tailers_environment
from .movers import movers
from .private_process import run_dir_of
from .reloading import Reloading
from .remote import RemoteStores
from .reports import TellingTroubles, named, told
from .settings import ConfigDirectory, merged
from .spool_file import SpoolFile, gateway_part, wanted

_LOG = logging.getLogger("tailrace.tailers")


class SeparateStore(Group):
    """Embedded stores, served. A Part."""

    def __init__(self, data: Path, directory: ConfigDirectory, listen: str | None) -> None:
        config = merged(directory.read("stores.yaml", StoresConfig), listen=listen)
        self.metrics_listen = config.metrics_listen
        sizes, run_dir = directory.lease_sizes(None), run_dir_of(directory).path
        stores = self._stores = EmbeddedStores(
            data, config, sizes=sizes, reads_log=True, run_dir=run_dir, carries_events=True, fleet=own_fleet()
        )
        board = TroubleBoard(lambda: named([*self.troubles(), *stores.troubles()]))
        self._server = StoreServer(config.listen, stores.engines() | {"troubles": board}, config.peers)
        super().__init__([stores, self._server, CertificateWatch()])

    async def samples(self) -> list[Sample]:
        """Metrics of the stores now."""
        found = [Sample(metrics.STORE_TROUBLES, (), len([*self.troubles(), *self._stores.troubles()]))]
        held = self._stores.held_logs.items()
        return [*found, *(Sample(metrics.STORE_HELD_LOG, (("database", name),), each.size) for name, each in held)]

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._server.address


class SeparateGateway(Group):
    """A gateway over served stores. A Part. `data` is the directory in which it spools while they are away; None: it
    does not."""

    def __init__(self, store: str, directory: ConfigDirectory, listen: str | None, data: Path | None = None) -> None:
        config = merged(directory.read("gateway.yaml", GatewayConfig), listen=listen)
        self.metrics_listen = config.metrics_listen
        spool = SpoolFile(data, config, own=True) if data is not None and wanted(data, config, apart=True) else None
        stores = self._stores = RemoteStores(store)
        progress = ReplayProgress(stores.checkpoints, stores.ledger, stores.ownership)
        self._replays = ReplayOrders(stores.replays, progress, config.replays)
        self._reloading = Reloading(
            directory.path,
            (),
            declare=self._declare,
            reconfigure=None,
            watch=False,
        )
        self._server = GatewayServer(
            config,
            gateway_stores(stores, spool),
            Neighbours(
                overview=self._overview, replays=self._replays, troubles=self._all_troubles, files=self._reloading
            ),
            declared(directory),
        )
        posting = Posting(run_dir_of(directory), "gateway", f"store at {store}", self._server)
        super().__init__([stores, gateway_part(self._server, spool), posting, self._reloading, CertificateWatch()])

    async def samples(self) -> list[Sample]:
        """Metrics of the platform now, as far as this gateway knows them."""
        return await self._server.samples()

    async def _declare(self, before: DeclaredFiles, now: DeclaredFiles) -> None:
        await self._server.declare(before, now)

    async def _overview(self) -> Overview:
        """Numbers from the stores; tailers and delay streams belong to other processes."""
        return Overview(replays=await self._replays.overviews())

    async def _all_troubles(self) -> list[Trouble]:
        """Troubles of this gateway, and those that the store server knows of itself and of others, if it answers."""
        return [*self.troubles(), *self._reloading.troubles(), *await told(self._stores.troubles)]

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._server.address


class SeparateDelay(Group):
    """The delay service over served stores. A Part."""

    def __init__(self, store: str, directory: ConfigDirectory, listen: str | None) -> None:
        config = merged(directory.read("delay.yaml", DelayConfig), listen=listen)
        self.metrics_listen = config.metrics_listen
        stores = RemoteStores(store, directory.read("stores.yaml", StoresConfig), own_fleet())
        self._service = DelayService(stores.delay_log, config, queue=stores.delay_queue)
        self._server = DelayServer(self._service, config)
        telling = TellingTroubles(stores.troubles, self.troubles)
        super().__init__(
            [stores, *movers(stores, stores.delay_queue, config), self._server, telling, CertificateWatch()]
        )

    async def samples(self) -> list[Sample]:
        """Metrics of the delay service now."""
        return [
            Sample(metrics.DELAY, (("stream", depth.stream),), depth.items) for depth in await self._service.depth()
        ]

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._server.address


class SeparateTailers:
    """Tailers of these files, and of those in the folders among them, over served stores, with the delay service at its
    address. A Part. With `listen` (host:port) it answers health checks there; `address` is the actual one after
    start."""

    def __init__(
        self,
        files: Sequence[Path],
        directory: ConfigDirectory,
        *,
        scheduler: str,
        delay: str,
        store: str,
        heartbeat: float | None = None,
        listen: str | None = None,
        watch: bool = False,
    ) -> None:
        self.address = ""
        self._reloading = Reloading(
            None, files, declare=None, reconfigure=self._reconfigure, watch=watch, check=self._check
        )
        self._listen = listen
        self._health = Health(TAILERS)
        self._server: grpc.aio.Server | None = None
        self._configs = [load(path, TailerConfig) for path in files_of(files)]
        if not self._configs:
            _without_any(files, watch)
        self._sizes = directory.lease_sizes(heartbeat)
        self._scheduler = scheduler
        self._delay_address = delay
        self._stores = RemoteStores(store, directory.read("stores.yaml", StoresConfig), own_fleet())
        self._parts: Group | None = None
        self._tailers: Tailers | None = None
        self._delay: DelayClient | None = None

    async def start(self) -> None:
        stores = self._stores
        self._delay = DelayClient(self._delay_address)
        tailers = self._tailers = Tailers(
            self._configs,
            tailers_environment(stores),
            self._scheduler,
            self._delay,
            self._sizes,
            on_health=self._tell_health,
            replays=stores.replays,
        )
        telling = TellingTroubles(stores.troubles, self._troubles)
        member = Membership(stores.control, tailers)
        self._parts = Group([stores, tailers, member, telling, self._reloading, CertificateWatch()])
        await self._parts.start()
        if self._listen:
            self._server, self.address = await serve(self._listen, [self._health.register], chosen_by="--listen")

    async def _check(self, configs: Sequence[TailerConfig]) -> None:
        if self._tailers is not None:
            self._tailers.check_names(configs)

    async def _reconfigure(self, configs: Sequence[TailerConfig]) -> dict[str, str]:
        return {} if self._tailers is None else await self._tailers.reconfigure(configs)

    async def samples(self) -> list[Sample]:
        """Metrics of its tailers now."""
        return [] if self._tailers is None else of_tailers(self._tailers.overviews())

    def _troubles(self) -> list[Trouble]:
        """Failures here, and tailers that make no progress."""
        if self._parts is None or self._tailers is None:
            return []
        now, found = SYSTEM_CLOCK.wall(), [*self._parts.troubles(), *self._reloading.troubles()]
        for each in (alert for tailer in self._tailers.overviews() for alert in of_a_tailer(tailer, now)):
            found.append(Trouble(f"tailer {each.subject}", each.since, each.what, todo=each.todo))
        return found

    async def _tell_health(self, tailer: str, well: bool) -> None:
        if tailer:
            await self._health.set_also(f"{TAILERS}/{tailer}", well)
        else:
            await self._health.set(well)

    async def drain(self, timeout: float) -> None:
        if self._parts is not None:
            await self._parts.drain(timeout)

    async def stop(self) -> None:
        if self._parts is not None:
            await self._parts.stop()
        if self._server is not None:
            await self._server.stop(None)
        if self._delay is not None:
            await self._delay.close()


def _without_any(folders: Sequence[Path], watch: bool) -> None:
    """Raises ConfigError for folders without a file; where they are watched, it logs that one may come."""
    names = ", ".join(map(str, folders))
    if not watch:
        raise ConfigError(f"{names}: no file of a tailer (*.yaml); put one there, or wait for one with --watch")
    _LOG.warning("%s: no file of a tailer (*.yaml) yet; a new file takes effect by itself", names)
