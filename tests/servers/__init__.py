"""The real servers that tests run against, one file each. A fixture takes, in this order:

1. the address that the environment names (`TAILRACE_TEST_KAFKA=host:port`, …),
2. a container, when a Docker daemon answers,
3. a server that it starts itself from what the machine has or may fetch.

It prints which one it got. Where none is to be had, the tests that need one fail in CI, and elsewhere are skipped with
a word on how to get it.
"""

from __future__ import annotations

import os
import socket
from typing import NoReturn

import pytest


def none_to_be_had(what: str, how: str) -> NoReturn:
    """Ends a fixture that found no server: fails in CI, which must have all of them, and skips elsewhere."""
    words = f"not tested against {what}: none is to be had here; {how}"
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)


def docker_answers() -> bool:
    """Whether a Docker daemon can be talked to: where DOCKER_HOST says, else at its usual socket."""
    scheme, _, place = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    host, _, port = place.partition("/")[0].rpartition(":")
    family, address = (socket.AF_UNIX, place) if scheme == "unix" else (socket.AF_INET, (host, int(port or 2375)))
    with socket.socket(family) as end:
        end.settimeout(2)
        try:
            end.connect(address)
            end.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in end.recv(64)
        except OSError:
            return False


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on now. Whoever takes one must be ready to find it taken."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
