"""Discovery of gateways: the argument, else TAILRACE_GATEWAY, else the `gateway` or `gateways` of a client.yaml, else
the gateway that runs on this machine. An argument and the environment name several with commas between.

The file is the one named by TAILRACE_CONFIG (a client.yaml, or a directory that holds one), else `configs/client.yaml`
under the current directory. A file of the usual place may be absent; one that was named may not.

A gateway of this machine is found by the notices (service registrations) in the run directory (`notices.py`): at the
default address, if this user listens there or there is no notice, else at the address of the only notice. Of several,
none of them at the default address, the user has to choose one. A scheduler is found in the same way, by its argument
and TAILRACE_SCHEDULER.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..foundation.looked_for import answers
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
#: Most gateways that a message lists for the user to choose from.
NAMED = 10


@dataclass(frozen=True, slots=True)
class Found:
    """The addresses that were found, each host:port.

    why     why these, for the message that they do not answer; empty: the caller gave them
    looked  whether they were looked for on this machine, since nobody named any: another look may find another one
    home    the platform's home, as its notice says; empty: unknown
    """

    addresses: tuple[str, ...]
    why: str = ""
    looked: bool = False
    home: str = ""

    @property
    def reason(self) -> str:
        """A sentence on the choice, for the end of a message that they do not answer; empty: none."""
        return f" It was asked because {self.why}" if self.why else ""


def find_gateways(argument: str | Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> Found:
    """Finds the gateways. Raises ConfigError, which says where a wrong address stands, or which ones to choose from."""
    return named_gateways(argument, environment) or look("gateway", environment)


def named_gateways(
    argument: str | Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> Found | None:
    """The gateways that somebody named; None: nobody did. Raises ConfigError."""
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
    return None


def set_default_gateway(gateway: str) -> None:
    """Makes a gateway the default of clients in this process and in those that it starts, for functions that run there.
    A gateway that the environment names stays."""
    os.environ.setdefault(GATEWAY_VARIABLE, gateway)


def find_gateway(argument: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Finds the first gateway, for a caller that talks to one only."""
    return find_gateways(argument, environment).addresses[0]


def find_scheduler(argument: str | None = None, environment: Mapping[str, str] | None = None) -> Found:
    """Finds a scheduler. Raises ConfigError, which says where a wrong address stands, or which ones to choose from."""
    return named_scheduler(argument, environment) or look("scheduler", environment)


def named_scheduler(argument: str | None = None, environment: Mapping[str, str] | None = None) -> Found | None:
    """The scheduler that somebody named; None: nobody did. Raises ConfigError."""
    environment = os.environ if environment is None else environment
    if argument:
        return Found((checked_address(argument, "--scheduler", DEFAULT_SCHEDULER),))
    if named := environment.get(SCHEDULER_VARIABLE):
        checked_address(named, f"the environment variable {SCHEDULER_VARIABLE}", DEFAULT_SCHEDULER)
        return Found((named,), f"{SCHEDULER_VARIABLE} names it")
    return None


def look(part: str, environment: Mapping[str, str] | None = None) -> Found:
    """Looks for a part (gateway or scheduler) on this machine. Raises ConfigError: several run, none at the default
    address."""
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
    """Looks again for a part that does not answer where it was found: its new address, on the same platform if that is
    known. None: it has not moved, or nobody knows."""
    known = [each for each in notices(part, environment) if before.home in ("", each.home)]
    if len(known) != 1 or known[0].address in before.addresses:
        return None
    return _told(known[0], " and ".join(str(path) for path in places(environment)))


def _told(notice: Notice, where: str) -> Found:
    why = f"it is the one {notice.part} that a notice in {where} tells of"
    return Found((notice.address,), why, True, notice.home)


def _ours(port: str, known: Sequence[Notice]) -> bool:
    """Whether this user, or one with a notice, listens at a port without a notice, as a tunnel to another machine does.
    (With a chosen run directory only notices count: a listener may belong to another directory.) The kernel takes
    milliseconds to name a listener where there are many connections, so it is asked only if there is one."""
    from ..foundation.port_listeners import listeners

    return answers(f"127.0.0.1:{port}") and bool(
        (listeners("127.0.0.1", int(port)) or set()) & {os.geteuid(), *(each.owner for each in known)}
    )


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
