"""Where the gateway is: the argument, else TAILRACE_GATEWAY, else the `gateway` of a client.yaml, else loopback.

The file is the one named by TAILRACE_CONFIG (a client.yaml, or a directory that holds one), else `configs/client.yaml`
under the current directory. A file of the usual place may be absent; one that was named may not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .model.errors import ConfigError

DEFAULT_GATEWAY = "127.0.0.1:8786"
GATEWAY_VARIABLE = "TAILRACE_GATEWAY"
CONFIG_VARIABLE = "TAILRACE_CONFIG"
FILE_NAME = "client.yaml"
USUAL_FILE = Path("configs") / FILE_NAME

HIGHEST_PORT = 65_535


def find_gateway(argument: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The gateway's address, host:port. Raises ConfigError naming where a wrong one was found."""
    environment = os.environ if environment is None else environment
    if argument:
        return _checked(argument, "the gateway argument")
    if named := environment.get(GATEWAY_VARIABLE):
        return _checked(named, f"the environment variable {GATEWAY_VARIABLE}")
    path = USUAL_FILE
    if chosen := environment.get(CONFIG_VARIABLE):
        path = Path(chosen)
        if path.is_dir():
            path = path / FILE_NAME
        elif not path.exists():
            raise ConfigError(f"{CONFIG_VARIABLE} names {chosen}, which does not exist: expected a {FILE_NAME}")
    if path.is_file():
        return _checked(_from_file(path), f"{path}, key gateway")
    return DEFAULT_GATEWAY


def _from_file(path: Path) -> str:
    from .client_config import ClientConfig
    from .config import load

    return load(path, ClientConfig).gateway or DEFAULT_GATEWAY


def _checked(address: str, where: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) <= HIGHEST_PORT:
        raise ConfigError(f'{where} is {address!r}: expected host:port, such as "{DEFAULT_GATEWAY}"')
    return address
