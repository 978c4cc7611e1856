"""The files of a configuration directory, and the model that reads each. All are read before anything starts.

A part that is started alone finds the others as they are named, else as the files of its own configuration directory
say where these listen, else it looks for them on this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..delay_service.config import DelayConfig
from ..foundation.config import load
from ..foundation.looked_for import ChosenAddress, LookedFor
from ..foundation.notices import dialable
from ..gateway.config import GatewayConfig
from ..gateway.quotas import QuotasConfig
from ..gateway.schedules import SchedulesConfig
from ..model.address import DEFAULT_DELAY, DEFAULT_STORE, read_address
from ..model.errors import ConfigError
from ..runtime.config import WorkerConfig
from ..scheduler.config import SchedulerConfig
from ..sdk.client_config import ClientConfig
from ..sdk.discovery import Found, look, named_gateways, named_scheduler
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


def scheduler_for(given: str | None, config: Path | None) -> str:
    """The address of the scheduler. Raises ConfigError."""
    return _found("scheduler", named_scheduler(given or None), config)


def gateway_for(given: str | None, config: Path | None) -> str:
    """The address of the gateway. Raises ConfigError."""
    return _found("gateway", named_gateways(given or None), config)


def store_for(given: str | None, config: Path | None) -> str:
    """The address of the store server. Raises ConfigError."""
    return given or configured("store", config) or DEFAULT_STORE


def delay_for(given: str | None, config: Path | None) -> str:
    """The address of the delay service. Raises ConfigError."""
    return given or configured("delay", config) or DEFAULT_DELAY


def configured(part: str, config: Path | None) -> ChosenAddress | None:
    """The address at which a part of this configuration listens; None where its file does not say it."""
    name, directory = LISTENERS[part], ConfigDirectory(config)
    found = directory.find(name, MODELS[name])
    if found is None or "listen" not in found.model_fields_set:
        return None
    address = dialable(str(getattr(found, "listen")))  # noqa: B009 - of any of these models
    return ChosenAddress(address, f"it is `listen` in {config}/{name}") if read_address(address) is not None else None


def _found(part: str, named: Found | None, config: Path | None) -> str:
    if named is not None:
        return ChosenAddress(named.addresses[0], named.why or f"--{part} names it")
    if address := configured(part, config):
        return address
    found = look(part)
    return LookedFor(found.addresses[0], part, found.home, found.why)
