"""The address of a service, host:port: how it is read, and whether it stays on this machine."""

from __future__ import annotations

from typing import NamedTuple

from .errors import ConfigError

HIGHEST_PORT = 65_535
#: Addresses where the parts of a machine listen, and are looked for, unless they are told otherwise.
DEFAULT_GATEWAY = "127.0.0.1:8786"
DEFAULT_SCHEDULER = "127.0.0.1:8788"
DEFAULT_DELAY = "127.0.0.1:8789"
DEFAULT_STORE = "127.0.0.1:8790"
#: Before an address: TLS is spoken there though it is on this machine, as at the end of a tunnel. Beyond loopback it is
#: spoken anyhow, once a process has certificates.
SECURED = "tls:"


class Address(NamedTuple):
    """A host, as it was written (an IPv6 address stands in brackets), and a port."""

    host: str
    port: int

    @property
    def bare_host(self) -> str:
        """The host as sockets take it, without brackets."""
        return self.host.strip("[]")

    @property
    def loopback(self) -> bool:
        """Whether it stays on this machine."""
        import ipaddress  # not by short commands, which only read an address

        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.bare_host).is_loopback
        except ValueError:
            return False


def read_address(text: str, lowest_port: int = 1) -> Address | None:
    """The host and port that a text names; None: it is no address. `lowest_port` 0 takes what stands for any free
    one."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and len(port) <= len(str(HIGHEST_PORT))):
        return None
    return Address(host, int(port)) if lowest_port <= int(port) <= HIGHEST_PORT else None


def parse_address(text: str, lowest_port: int = 1) -> Address:
    """Reads a text that must be an address, as `read_address` does. Raises ConfigError for any other."""
    address = read_address(text, lowest_port)
    if address is None:
        raise ConfigError(f'{text!r} is not an address: expected host:port, such as "127.0.0.1:8786"')
    return address


def checked_address(text: str, where: str, example: str) -> str:
    """The text, if it names a host and a port that may be called. Raises ConfigError, which says where it was given."""
    if read_address(text) is None:
        raise ConfigError(f'{where} is {text!r}: expected host:port, such as "{example}"')
    return text


def listening_address(text: str, *, secured: bool = False) -> Address:
    """The address to listen on that a text names; port 0: any free one. Raises ConfigError; also for an address beyond
    loopback, unless callers there are `secured` to be known."""
    address = read_address(text.removeprefix(SECURED), lowest_port=0)
    if address is None:
        raise ConfigError(f'{text!r} is not an address to listen on: expected host:port, such as "127.0.0.1:8786"')
    if not secured and wants_tls(text):
        raise ConfigError(
            f"refusing to listen on {text}: without certificates only loopback is allowed (127.0.0.1, ::1 or "
            "localhost). `tailrace auth init DIR --host NAME` makes some; `tls: FOLDER` in access.yaml, or "
            "TAILRACE_TLS, names this process's"
        )
    return address


def wants_tls(text: str) -> bool:
    """Whether an address wants TLS: on no other is the caller known."""
    address = read_address(text, lowest_port=0)
    return text.startswith(SECURED) or (address is not None and not address.loopback)
