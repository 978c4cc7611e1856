"""Docker: whether containers can be had here."""

from __future__ import annotations

import os
import socket


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
