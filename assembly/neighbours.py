"""Addresses of the parts that a part needs which is started alone: as they are named, else as the files of its own
configuration directory say where these parts listen, else looked for on this machine."""

from __future__ import annotations

from pathlib import Path

from ..foundation.looked_for import LookedFor
from ..foundation.notices import dialable
from ..model.address import DEFAULT_DELAY, DEFAULT_STORE, read_address
from ..sdk.discovery import Found, look, named_gateways, named_scheduler
from .files import LISTENERS, MODELS
from .settings import ConfigDirectory


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


def configured(part: str, config: Path | None) -> str:
    """The address at which a part of this configuration listens; empty where its file does not say it."""
    name = LISTENERS[part]
    found = ConfigDirectory(config).find(name, MODELS[name])
    if found is None or "listen" not in found.model_fields_set:
        return ""
    address = dialable(str(getattr(found, "listen")))  # noqa: B009 - of any of these models
    return address if read_address(address) is not None else ""


def _found(part: str, named: Found | None, config: Path | None) -> str:
    if named is not None:
        return named.addresses[0]
    if address := configured(part, config):
        return address
    found = look(part)
    return LookedFor(found.addresses[0], part, found.home)
