"""Environments: the stores that each part gets, in the process or in another one. One place, so that none is
forgotten."""

from __future__ import annotations

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..gateway.environment import DeclaredFiles, GatewayStores
from ..gateway.quotas import QuotasConfig
from ..gateway.schedules import SchedulesConfig
from ..stores.tailer_states import TailerStates
from ..tailers.registry import Environment
from .embedded import EmbeddedStores
from .remote import RemoteStores
from .settings import ConfigDirectory
from .spool_file import SpoolFile


def gateway_stores(stores: EmbeddedStores | RemoteStores, spool: SpoolFile | None = None) -> GatewayStores:
    """The stores that a gateway reads and writes."""
    return GatewayStores(
        queue=stores.queue,
        results=stores.results,
        dead_letters=stores.dead_letters,
        control=stores.control,
        drops=stores.drops,
        schedules=stores.schedules,
        usage=stores.usage,
        jobs=stores.jobs,
        tailers=TailerStates(stores.checkpoints, stores.ownership),
        trusted=stores.trusted,
        spool=None if spool is None else spool.spool,
    )


def tailers_environment(stores: EmbeddedStores | RemoteStores, clock: Clock = SYSTEM_CLOCK) -> Environment:
    """The stores that tailers read and write."""
    return Environment(
        queue=stores.queue,
        log=stores.log,
        delay_log=stores.delay_log,
        checkpoints=stores.checkpoints,
        inventory=stores.inventory,
        dead_letters=stores.dead_letters,
        results=stores.results,
        ownership=stores.ownership,
        ledger=stores.ledger,
        drops=stores.drops,
        segments=stores.segments,
        schedules=stores.schedules,
        control=stores.control,
        heights=stores.heights,
        trusted=stores.trusted,
        clock=clock,
    )


def declared(directory: ConfigDirectory) -> DeclaredFiles:
    """The content of `quotas.yaml` and `schedules.yaml`. Raises ConfigError."""
    schedules = directory.find("schedules.yaml", SchedulesConfig)
    return DeclaredFiles(
        quotas=directory.read("quotas.yaml", QuotasConfig).all(),
        schedules=None if schedules is None else schedules.kept(),
    )
