"""The reason why a server cannot listen at an address: a taken port, or no such name or address on this machine."""

from __future__ import annotations

import errno
import socket

from ..model.address import SECURED, read_address
from ..model.errors import AlreadyInUse, ConfigError, TailraceError
from .direct import SCHEME


def not_listening(address: str, chosen_by: str = "") -> TailraceError:
    """The error for an address at which a server could not be started. The system is asked again, since gRPC gives no
    reason. `chosen_by`: the setting of the address."""
    at = read_address(address.removeprefix(SECURED).removeprefix(SCHEME), lowest_port=0)
    by = f" by {chosen_by}" if chosen_by else ""
    try:
        if at is not None:
            _bind(at.bare_host, at.port)
    except socket.gaierror as error:
        return ConfigError(
            f"cannot listen on {address}: the name {at.host if at else ''} is not known here ({error.strerror}); "
            f"expected a name of this machine: choose another{by}, or wait until it is known"
        )
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return ConfigError(f"cannot listen on {address}: {error.strerror}; choose another address or port{by}")
    holds = f"Stop the process that has it, or choose another{by} (0: any free one)"
    return AlreadyInUse(f"cannot listen on {address}: the port is taken. {holds}")


def _bind(host: str, port: int) -> None:
    """Binds a socket to the first address of a name, and closes it. Raises OSError."""
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind(where)
