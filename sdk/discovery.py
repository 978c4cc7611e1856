"""Discovery of gateways: the argument, else TAILRACE_GATEWAY, else the `gateway` or `gateways` of a client.yaml, else
what runs on this machine. In an argument and in the environment several stand with commas between.

The file is the one named by TAILRACE_CONFIG (a client.yaml, or a directory that holds one), else `configs/client.yaml`
under the current directory. A file of the usual place may be absent; one that was named may not.

What runs on this machine is looked for by the notices in the run directory (`notices.py`): the default address, if this
user listens there or nobody is known, else the one that is known. Several, none of them there, are for the user to
choose from. A scheduler is found likewise, by its argument and TAILRACE_SCHEDULER.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..foundation.notices import Notice, notices
from ..foundation.run_dir import VARIABLE, places
from ..model.address import DEFAULT_GATEWAY, DEFAULT_SCHEDULER, checked_address, parse_address
from ..model.errors import ConfigError

GATEWAY_VARIABLE = "TAILRACE_GATEWAY"
SCHEDULER_VARIABLE = "TAILRACE_SCHEDULER"
CONFIG_VARIABLE = "TAILRACE_CONFIG"
FILE_NAME = "client.yaml"
USUAL_FILE = Path("configs") / FILE_NAME

_DEFAULTS = {"gateway": DEFAULT_GATEWAY, "scheduler": DEFAULT_SCHEDULER}
_VARIABLES = {"gateway": GATEWAY_VARIABLE, "scheduler": SCHEDULER_VARIABLE}
#: Seconds within which whoever listens on loopback takes a connection, if it takes one at all.
ANSWERED_WITHIN = 0.1
#: Of those that a user has to choose from, so many are named.
NAMED = 10


@dataclass(frozen=True, slots=True)
class Found:
    """Addresses, each host:port, and why these: for whoever gets no answer there; empty: they were given. `looked`:
    nobody named them, so that another look may find another one; `home`: of which platform, as its notice says."""

    addresses: tuple[str, ...]
    why: str = ""
    looked: bool = False
    home: str = ""

    @property
    def reason(self) -> str:
        """Why these, behind what is said of their silence."""
        return f" It was asked because {self.why}" if self.why else ""


def find_gateways(argument: str | Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> Found:
    """The gateways. Raises ConfigError: it names where a wrong address was found, or what there is to choose from."""
    environment = os.environ if environment is None else environment
    if argument:
        given = argument.split(",") if isinstance(argument, str) else argument
        return Found(_checked(given, "the gateway argument"))
    if named := environment.get(GATEWAY_VARIABLE):
        given = _checked(named.split(","), f"the environment variable {GATEWAY_VARIABLE}")
        return Found(given, f"{GATEWAY_VARIABLE} names it")
    path = USUAL_FILE
    if chosen := environment.get(CONFIG_VARIABLE):
        path = Path(chosen)
        if path.is_dir():
            path = path / FILE_NAME
        elif not path.exists():
            raise ConfigError(f"{CONFIG_VARIABLE} names {chosen}, which does not exist: expected a {FILE_NAME}")
    if path.is_file():
        key, found = _from_file(path)
        if found:
            return Found(_checked(found, f"{path}, key {key}"), f"{path} names it")
    return look("gateway", environment)


def functions_clients_of(gateway: str) -> None:
    """Clients in functions of this process, and of those it starts, are of this gateway, unless the environment names
    another one."""
    os.environ.setdefault(GATEWAY_VARIABLE, gateway)


def find_gateway(argument: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The first of them, for what talks to one gateway."""
    return find_gateways(argument, environment).addresses[0]


def find_scheduler(argument: str | None = None, environment: Mapping[str, str] | None = None) -> Found:
    """A scheduler. Raises ConfigError: it names where a wrong address was found, or what there is to choose from."""
    environment = os.environ if environment is None else environment
    if argument:
        return Found((checked_address(argument, "--scheduler", DEFAULT_SCHEDULER),))
    if named := environment.get(SCHEDULER_VARIABLE):
        checked_address(named, f"the environment variable {SCHEDULER_VARIABLE}", DEFAULT_SCHEDULER)
        return Found((named,), f"{SCHEDULER_VARIABLE} names it")
    return look("scheduler", environment)


def look(part: str, environment: Mapping[str, str] | None = None) -> Found:
    """The one of this machine. Raises ConfigError: several run, and none at the default address."""
    environment = os.environ if environment is None else environment
    default = _DEFAULTS[part]
    known = notices(part, environment)
    where = " and ".join(str(path) for path in places(environment))
    if not known:
        return Found((default,), f"it is the default, and no notice in {where} tells of a {part} that runs", True)
    port = str(parse_address(default).port)
    for each in known:
        if each.address in (default, f"localhost:{port}"):
            return Found((default,), "it is the default", True, each.home)
    if not environment.get(VARIABLE) and _ours(port, known):
        return Found((default,), "it is the default", True)
    if len(known) == 1:
        return _told(known[0], where)
    raise ConfigError(_choice(part, known))


def look_again(part: str, before: Found, environment: Mapping[str, str] | None = None) -> Found | None:
    """Where a part is that was looked for and does not answer: at another address by now, of the same platform if one
    was found. None: where it was, or nobody knows."""
    known = [each for each in notices(part, environment) if before.home in ("", each.home)]
    if len(known) != 1 or known[0].address in before.addresses:
        return None
    return _told(known[0], " and ".join(str(path) for path in places(environment)))


def _told(notice: Notice, where: str) -> Found:
    why = f"it is the one {notice.part} that a notice in {where} tells of"
    return Found((notice.address,), why, True, notice.home)


def _ours(port: str, known: Sequence[Notice]) -> bool:
    """Whether one of these users listens at a port without a notice, as a tunnel to another machine does. (Of a run
    directory that was chosen only notices count: what listens there may be of another one.) Who it is takes the
    kernel milliseconds to say where there are many connections, so it is asked when somebody does."""
    from ..foundation.port_listeners import listeners

    try:
        socket.create_connection(("127.0.0.1", int(port)), ANSWERED_WITHIN).close()
    except TimeoutError:
        pass  # it takes no more of them just now
    except OSError:
        return False
    return bool((listeners("127.0.0.1", int(port)) or set()) & {os.geteuid(), *(each.owner for each in known)})


def _choice(part: str, known: Sequence[Notice]) -> str:
    lines = [f"  {each.address}  process {each.pid}, {each.home}" for each in known[:NAMED]]
    if len(known) > NAMED:
        lines.append(f"  … and {len(known) - NAMED} more")
    argument = "--gateway, the gateway argument" if part == "gateway" else "--scheduler"
    head = f"{len(known)} {part}s of yours run on this machine, and none at the default address {_DEFAULTS[part]}:"
    return "\n".join([head, *lines, f"say which one: {argument} or {_VARIABLES[part]}"])


def _from_file(path: Path) -> tuple[str, Sequence[str]]:
    from ..foundation.config import load
    from .client_config import ClientConfig

    config = load(path, ClientConfig)
    if config.gateways:
        return "gateways", config.gateways
    return "gateway", [config.gateway] if config.gateway else []


def _checked(addresses: Sequence[str], where: str) -> tuple[str, ...]:
    found = tuple(address.strip() for address in addresses)
    for address in found:
        checked_address(address, where, DEFAULT_GATEWAY)
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} names one gateway twice: {', '.join(found)}")
    return found
