"""What each part gets of the stores, in the process or in another one: one place, so that none is forgotten."""

from __future__ import annotations

from ..gateway.environment import Declared, GatewayStores
from ..gateway.quotas import QuotasConfig
from ..gateway.schedules import SchedulesConfig
from .embedded import EmbeddedStores
from .remote import RemoteStores
from .settings import ConfigDirectory
from .spool_file import SpoolFile


def gateway_stores(stores: EmbeddedStores | RemoteStores, spool: SpoolFile | None = None) -> GatewayStores:
    """What a gateway reads and writes."""
    return GatewayStores(
        queue=stores.queue,
        results=stores.results,
        dead_letters=stores.dead_letters,
        control=stores.control,
        drops=stores.drops,
        schedules=stores.schedules,
        spool=None if spool is None else spool.spool,
    )


def declared(directory: ConfigDirectory) -> Declared:
    """What `quotas.yaml` and `schedules.yaml` say. Raises ConfigError."""
    schedules = directory.find("schedules.yaml", SchedulesConfig)
    return Declared(
        quotas=directory.read("quotas.yaml", QuotasConfig).quotas(),
        schedules=None if schedules is None else schedules.kept(),
    )
