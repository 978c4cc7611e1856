"""A port for a part to listen on, now and after each time it is started again: free at this moment, and none that the
kernel may give to a connection meanwhile, as it does with those that it hands out for port 0.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

#: Ports below are often somebody's by custom.
FIRST = 10_000
#: First port of the kernel's own, when it does not say (RFC 6335's dynamic ports begin at 49152, Linux's at 32768).
KERNEL_FIRST = 32_768
#: Ports that are tried; if all of them are taken, the kernel is to choose.
TRIES = 100
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port(host: str = "127.0.0.1") -> int:
    """A port of this host that nobody listens on now. The caller must be ready to find it taken."""
    end = KERNEL_FIRST
    with contextlib.suppress(OSError, ValueError, IndexError):
        end = int(_RANGE.read_text().split()[0])
    for _ in range(TRIES if end > FIRST else 0):
        with contextlib.suppress(OSError):
            return _bound(host, random.randrange(FIRST, end))
    return _bound(host, 0)


def _bound(host: str, port: int) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as held:
        held.bind((host.strip("[]"), port))
        return int(held.getsockname()[1])
