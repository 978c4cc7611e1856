"""The files of a configuration directory, and the model that reads each. All are read before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..delay_service.config import DelayConfig
from ..foundation.config import load
from ..gateway.config import GatewayConfig
from ..gateway.quotas import QuotasConfig
from ..gateway.schedules import SchedulesConfig
from ..model.errors import ConfigError
from ..runtime.config import WorkerConfig
from ..scheduler.config import SchedulerConfig
from ..sdk.client_config import ClientConfig
from ..stores.config import StoresConfig
from ..tailers.config import TailerConfig
from .settings import AccessConfig, ConfigDirectory, LeasesConfig

MODELS: dict[str, type[BaseModel]] = {
    "access.yaml": AccessConfig,
    "client.yaml": ClientConfig,
    "delay.yaml": DelayConfig,
    "gateway.yaml": GatewayConfig,
    "leases.yaml": LeasesConfig,
    "quotas.yaml": QuotasConfig,
    "scheduler.yaml": SchedulerConfig,
    "schedules.yaml": SchedulesConfig,
    "stores.yaml": StoresConfig,
    "worker.yaml": WorkerConfig,
}

#: The parts that listen, and the file with the address of each.
LISTENERS = {
    "gateway": "gateway.yaml",
    "scheduler": "scheduler.yaml",
    "delay": "delay.yaml",
    "store": "stores.yaml",
}


def read_all(directory: ConfigDirectory) -> dict[str, Any]:
    """Every file's settings, by file name; defaults for absent ones. Raises one ConfigError with the mistakes of all
    files, so that nothing is started on half a configuration."""
    found: dict[str, Any] = {}
    mistakes: list[str] = []
    for name, model in MODELS.items():
        try:
            found[name] = directory.read(name, model)
        except ConfigError as error:
            mistakes.append(str(error))
    seen: dict[str, Path] = {}
    for path in directory.tailers():
        try:
            tailer = load(path, TailerConfig)
            if tailer.name in seen:
                raise ConfigError(f"{path}: the tailer {tailer.name!r} is also in {seen[tailer.name]}: rename one")
            seen[tailer.name] = path
        except ConfigError as error:
            mistakes.append(str(error))
    try:
        if "leases.yaml" in found:
            found["leases.yaml"].sizes()
    except ConfigError as error:
        mistakes.append(f"{directory.path}/leases.yaml: {error}")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return found


def tailer_names(directory: ConfigDirectory) -> list[str]:
    """Names of the tailers in its files, sorted. Raises ConfigError, as `read_all` does."""
    return sorted(load(path, TailerConfig).name for path in directory.tailers())


def addresses(settings: dict[str, Any]) -> dict[str, str]:
    """The address at which each part is to listen."""
    listening = {part: settings[name].listen for part, name in LISTENERS.items()}
    return listening | {"direct": settings["scheduler.yaml"].direct_listen}
