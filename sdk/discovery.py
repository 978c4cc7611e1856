"""Where the gateways are: the argument, else TAILRACE_GATEWAY, else the `gateway` or `gateways` of a client.yaml, else
loopback. In an argument and in the environment several stand with commas between.

The file is the one named by TAILRACE_CONFIG (a client.yaml, or a directory that holds one), else `configs/client.yaml`
under the current directory. A file of the usual place may be absent; one that was named may not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from .model.errors import ConfigError

DEFAULT_GATEWAY = "127.0.0.1:8786"
GATEWAY_VARIABLE = "TAILRACE_GATEWAY"
CONFIG_VARIABLE = "TAILRACE_CONFIG"
FILE_NAME = "client.yaml"
USUAL_FILE = Path("configs") / FILE_NAME

HIGHEST_PORT = 65_535


def find_gateways(
    argument: str | Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The gateways' addresses, each host:port. Raises ConfigError naming where a wrong one was found."""
    environment = os.environ if environment is None else environment
    if argument:
        given = argument.split(",") if isinstance(argument, str) else argument
        return _checked(given, "the gateway argument")
    if named := environment.get(GATEWAY_VARIABLE):
        return _checked(named.split(","), f"the environment variable {GATEWAY_VARIABLE}")
    path = USUAL_FILE
    if chosen := environment.get(CONFIG_VARIABLE):
        path = Path(chosen)
        if path.is_dir():
            path = path / FILE_NAME
        elif not path.exists():
            raise ConfigError(f"{CONFIG_VARIABLE} names {chosen}, which does not exist: expected a {FILE_NAME}")
    if path.is_file():
        key, found = _from_file(path)
        return _checked(found, f"{path}, key {key}")
    return (DEFAULT_GATEWAY,)


def find_gateway(argument: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The first of them, for what talks to one gateway."""
    return find_gateways(argument, environment)[0]


def _from_file(path: Path) -> tuple[str, Sequence[str]]:
    from .client_config import ClientConfig
    from .config import load

    config = load(path, ClientConfig)
    if config.gateways:
        return "gateways", config.gateways
    return "gateway", [config.gateway or DEFAULT_GATEWAY]


def _checked(addresses: Sequence[str], where: str) -> tuple[str, ...]:
    found = tuple(address.strip() for address in addresses)
    for address in found:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) <= HIGHEST_PORT:
            raise ConfigError(f'{where} is {address!r}: expected host:port, such as "{DEFAULT_GATEWAY}"')
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} names one gateway twice: {', '.join(found)}")
    return found
