"""Parts: the settings of each, one frozen value, from which a process builds the part.

The command line makes such a value of its options; the parent of a child process sends one as JSON. This is the only
place that knows every folder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

import msgspec

from ..foundation.lifecycle import Part
from .address_notices import WithNotice
from .certificate_watch import CertificateWatch
from .private_process import run_dir_of
from .remade import Remade, Tell
from .running import GRACE
from .settings import ConfigDirectory, merged
from .with_metrics import measured

if TYPE_CHECKING:
    from ..model.limits import Snapshot
    from ..runtime.config import WorkerConfig
    from ..runtime.guard_handle import Guarding

_LOG = logging.getLogger("tailrace.runtime")
#: Seconds after which a part that is not ready has failed; a worker has more, beside what its modules may take to load.
READY_WITHIN, READY_BESIDES = 60.0, 30.0
#: Seconds that a worker waits to be ready until the gateway knows its functions; one that is away is not waited for.
REGISTERED_WITHIN = 2.0


class PartSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="part", forbid_unknown_fields=True):
    """Settings that every part has. Addresses are host:port.

    config     the configuration directory; None: everything is at its default
    heartbeat  seconds; None: as configured
    grace      seconds that its drain may take; None: as configured, or the usual 30
    """

    config: Path | None = None
    heartbeat: float | None = None
    grace: float | None = None

    @property
    def name(self) -> str:
        """The part's name."""
        return str(self.__struct_config__.tag)

    @property
    def directory(self) -> ConfigDirectory:
        """The configuration directory, read when asked."""
        return ConfigDirectory(self.config)

    @property
    def drain_time(self) -> float:
        """Seconds that its drain may take. Raises ConfigError where a file that should say is bad."""
        return GRACE if self.grace is None else self.grace

    @property
    def ready_within(self) -> float:
        """Seconds after which its start has failed. Raises ConfigError where a file that should say is bad."""
        return READY_WITHIN

    def build(self, guard: Guarding | None = None) -> Part:
        """Builds the part. `guard`: the process's own, of a worker."""
        raise NotImplementedError


class SchedulerSettings(PartSettings, frozen=True, kw_only=True, tag="scheduler"):
    """A scheduler.

    listen   address; None: as configured
    direct   address for sessions without gRPC (see SchedulerConfig); None: as configured
    gateway  the gateway whose gates and quotas it follows; None: it has none
    """

    listen: str | None = None
    direct: str | None = None
    gateway: str | None = None

    def build(self, guard: Guarding | None = None) -> Part:
        from ..scheduler.config import SchedulerConfig
        from ..scheduler.server import SchedulerServer
        from ..wire.gateway import watch

        directory, gateway = self.directory, self.gateway
        config = directory.read("scheduler.yaml", SchedulerConfig)
        config = merged(config, listen=self.listen, direct_listen=self.direct)
        sizes = directory.lease_sizes(self.heartbeat)

        def make(before: SchedulerServer | None) -> SchedulerServer:
            known = {} if before is None else before.listening

            async def follow(on_snapshot: Callable[[Snapshot], None]) -> None:
                assert gateway is not None
                await watch(gateway, on_snapshot, scheduler=f"{gethostname()}:{part.address.rpartition(':')[2]}")

            part = SchedulerServer(merged(config, **known), sizes, None if gateway is None else follow)
            return part

        home = "without a gateway" if gateway is None else f"gateway at {gateway}"
        remade = Remade(make, _telling(gateway))
        told = WithNotice(run_dir_of(directory), "scheduler", home, remade)
        told.also(CertificateWatch())
        if gateway is not None:
            from .reports import Reporting, StartDelays, TellingStartDelays, TellingUsage

            def delays() -> list[StartDelays]:
                rows: list[StartDelays] = remade.part.delays.rows()
                return rows

            told.also(TellingStartDelays(gateway, lambda: str(remade.part.id), delays))

            def reporting() -> Reporting:
                part: SchedulerServer = remade.part
                return Reporting(part.look_at_usage, part.usage_report, part.core.usage.accepted)

            told.also(TellingUsage(gateway, reporting))
        return measured(told, config.metrics_listen)


class WorkerSettings(PartSettings, frozen=True, kw_only=True, tag="worker"):
    """A worker.

    modules     modules or files with its functions
    schedulers  addresses of the schedulers that it attaches to
    gateway     the gateway to which its functions are announced; None: none
    changes     changes to its configuration, by key
    """

    modules: tuple[str, ...]
    schedulers: tuple[str, ...]
    gateway: str | None = None
    changes: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def configured(self) -> WorkerConfig:
        """The worker's file, with the changes. Raises ConfigError."""
        from ..runtime.config import WorkerConfig

        return merged(self.directory.read("worker.yaml", WorkerConfig), **self.changes)

    @property
    def drain_time(self) -> float:
        return self.configured.grace if self.grace is None else self.grace

    @property
    def ready_within(self) -> float:
        """Twice the load limit, and a margin: the worker loads its modules itself, and then its executors load them,
        who say so when they take too long."""
        return 2 * self.configured.load_limit + READY_BESIDES

    def build(self, guard: Guarding | None = None) -> Part:
        from ..runtime.loader import load_functions, shadows
        from ..runtime.worker import Worker

        config = self.configured
        loaded, sizes = load_functions(self.modules), self.directory.lease_sizes(self.heartbeat)
        if found := shadows(self.modules):
            _LOG.warning(
                "%s: named like modules of Python's standard library, and not imported in their place; rename them",
                ", ".join(map(str, found)),
            )

        def make(before: Worker | None) -> Worker:
            within = REGISTERED_WITHIN
            return Worker(config, loaded, self.schedulers, self.gateway, sizes, guard=guard, registered_within=within)

        return measured(Remade(make, _telling(self.gateway)), config.metrics_listen)


def _telling(gateway: str | None) -> Tell | None:
    """The function that tells the gateway of a part that failed and is open again."""
    from .reports import tell_failure

    return None if gateway is None else partial(tell_failure, gateway)


class NodeSettings(PartSettings, frozen=True, kw_only=True, tag="node"):
    """The embedded stores with everything that reads and writes them: gateway, delay service, tailers.

    data       the folder of the stores
    scheduler  address of the scheduler to which its tailers push
    gateway, store, delay    addresses at which these listen
    tailers    tailer files besides those of the configuration, and folders of such files
    watch      files that change are read again by itself
    """

    data: Path
    scheduler: str
    gateway: str
    store: str
    delay: str
    tailers: tuple[Path, ...] = ()
    watch: bool = False

    def build(self, guard: Guarding | None = None) -> Part:
        from .node import Node

        node = Node(
            self.data,
            self.directory,
            scheduler=self.scheduler,
            listen={"gateway": self.gateway, "store": self.store, "delay": self.delay},
            tailers=self.tailers,
            heartbeat=self.heartbeat,
            watch=self.watch,
        )
        return measured(node, node.metrics_listen)


class StoreSettings(PartSettings, frozen=True, kw_only=True, tag="store"):
    """Embedded stores in `data`, served at `listen` (None: as configured)."""

    data: Path
    listen: str | None = None

    def build(self, guard: Guarding | None = None) -> Part:
        from .separate import SeparateStore

        part = SeparateStore(self.data, self.directory, self.listen)
        return measured(part, part.metrics_listen)


class GatewaySettings(PartSettings, frozen=True, kw_only=True, tag="gateway"):
    """A gateway over the stores served at `store`; it spools in `data` while they are away (None: it does not)."""

    store: str
    listen: str | None = None
    data: Path | None = None

    def build(self, guard: Guarding | None = None) -> Part:
        from .separate import SeparateGateway

        part = SeparateGateway(self.store, self.directory, self.listen, self.data)
        return measured(part, part.metrics_listen)


class DelaySettings(PartSettings, frozen=True, kw_only=True, tag="delay"):
    """The delay service over the stores served at `store`."""

    store: str
    listen: str | None = None

    def build(self, guard: Guarding | None = None) -> Part:
        from .separate import SeparateDelay

        part = SeparateDelay(self.store, self.directory, self.listen)
        return measured(part, part.metrics_listen)


class TailersSettings(PartSettings, frozen=True, kw_only=True, tag="tailers"):
    """Tailers of these files, and of those in the folders among them, over the stores served at `store`, with the delay
    service at `delay`. Health checks are answered at `listen`, GET /metrics at `metrics`; None: nowhere. With `watch`
    files that change, come or go are read again by itself."""

    files: tuple[Path, ...]
    scheduler: str
    delay: str
    store: str
    listen: str | None = None
    metrics: str | None = None
    watch: bool = False

    def build(self, guard: Guarding | None = None) -> Part:
        from .separate import SeparateTailers

        part = SeparateTailers(
            self.files,
            self.directory,
            scheduler=self.scheduler,
            delay=self.delay,
            store=self.store,
            heartbeat=self.heartbeat,
            listen=self.listen,
            watch=self.watch,
        )
        return measured(part, self.metrics or "")


class MetricsSettings(PartSettings, frozen=True, kw_only=True, tag="metrics"):
    """A server that answers GET /metrics at `listen`, with the numbers of the gateway at `gateway`."""

    listen: str
    gateway: str

    def build(self, guard: Guarding | None = None) -> Part:
        from ..gateway.metrics_server import GatewayMetricsServer

        return GatewayMetricsServer(self.listen, self.gateway)


_CHILDREN = (
    SchedulerSettings
    | WorkerSettings
    | NodeSettings
    | StoreSettings
    | GatewaySettings
    | DelaySettings
    | TailersSettings
)


def to_data(settings: PartSettings) -> Any:
    """Settings as plain data, for a child process."""
    return msgspec.to_builtins(settings, enc_hook=str)


def from_data(data: Any) -> PartSettings:
    """Settings from plain data: the inverse of `to_data`."""
    found: PartSettings = msgspec.convert(data, _CHILDREN, dec_hook=lambda kind, value: kind(value))
    return found
