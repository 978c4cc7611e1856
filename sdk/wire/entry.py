"""Who may call: whoever knows the secret on the card of the platform's run directory (`sdk/run_dir.py`).

A server that was given a `CallerCheck` asks each call for it, but health checks. Who calls a part of this machine shows
the secrets that it can read (`Proof`), once the kernel has said that the one who listens there is who has that card, or
root: another user who took the port while the platform was down is told nothing.
"""

from __future__ import annotations

import contextvars
import hmac
import ipaddress
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..run_dir import VARIABLE, Card, cards, user_name

#: The metadata that shows a secret.
SHOWN_KEY = "tailrace-secret"
#: What may be asked without it: a question with one answer. To watch health one has to show it like for all else.
OPEN = "/grpc.health.v1.Health/Check"
#: Seconds for which what was found is shown without another look.
LOOK_AGAIN = 30.0

_LISTENING = "0A"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class CallerCheck:
    """What a server asks of its callers: a secret, which is on the card of `directory`, of the user `owner`."""

    def __init__(self, card: Card, group: str = "") -> None:
        self.card = card
        self.group = group
        self._secret = card.secret.encode()

    def admits(self, shown: Iterable[str | bytes]) -> bool:
        """Whether one of these is the secret."""
        return any(
            hmac.compare_digest(each.encode() if isinstance(each, str) else each, self._secret) for each in shown
        )

    def admits_call(self, method: str, metadata: Any) -> bool:
        """Whether a call may be made with this metadata."""
        return method == OPEN or self.admits(value for key, value in metadata or () if key == SHOWN_KEY)

    def admits_user(self, uid: int | None) -> bool:
        """Whether a user of this machine may connect to a socket that says who that is; None: it does not say."""
        return uid is None or bool(self.group) or uid in (0, os.geteuid(), self.card.owner)

    def refusal(self) -> str:
        """What is said to everybody else."""
        directory = self.card.directory
        if self.group:
            way = f"members of the group {self.group!r} get in with {VARIABLE}={directory}"
        else:
            way = (
                f"call it as that user (whose {VARIABLE} is {directory}), or have it name a group that may: access.yaml"
            )
        return f"this platform is run by {user_name(self.card.owner)}, and the call did not show its secret: {way}"


#: The entry of the servers that the running code starts; None: they ask nobody. Every command sets it.
ENTRY: contextvars.ContextVar[CallerCheck | None] = contextvars.ContextVar("tailrace-entry", default=None)


class Proof:
    """What to show to whoever listens at an address of this machine (host:port). Looked for at each call until it is
    found, since a part may be there before its platform is; and again now and then, since that may be another one."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("direct:").rpartition(":")
        self._port = int(port) if port.isdecimal() and is_loopback(host) else 0
        self._found: tuple[str, ...] = ()
        self._metadata: tuple[tuple[str, str], ...] | None = None
        self._again = 0.0

    def secrets(self) -> tuple[str, ...]:
        """All that may be shown there; nothing to another machine."""
        if self._port and (not self._found or time.monotonic() >= self._again):
            known = [*cards()]
            self._found = showable(known, listeners(self._port)) if known else ()
            self._metadata = tuple((SHOWN_KEY, secret) for secret in self._found) or None
            self._again = time.monotonic() + LOOK_AGAIN
        return self._found

    def metadata(self) -> tuple[tuple[str, str], ...] | None:
        """The same for a call over gRPC."""
        self.secrets()
        return self._metadata


def showable(known: Iterable[Card], listening: set[int] | None) -> tuple[str, ...]:
    """The secrets that these users may be shown: each its own; root, who reads all files, any. None: the system does
    not say who listens."""
    return tuple(card.secret for card in known if listening is None or (listening and listening <= {0, card.owner}))


def is_loopback(host: str) -> bool:
    """Whether a host name or address stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listeners(port: int, tables: Iterable[Path] = _TABLES) -> set[int] | None:
    """The users who listen at a port of this machine; None: the system does not say."""
    found: set[int] = set()
    read = False
    wanted = f":{port:04X}"
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        read = True
        for line in lines:
            fields = line.split(None, 8)
            if fields[3] == _LISTENING and fields[1].endswith(wanted):
                found.add(int(fields[7]))
    return found if read else None


def peer_user(connected: Any) -> int | None:
    """The user at the other end of a Unix socket; None: the system does not say, or it is another kind."""
    if connected is None or connected.family != socket.AF_UNIX or sys.platform != "linux":
        return None
    _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


class ProvenChannel:
    """A channel of gRPC, blocking or not, whose calls show what they may."""

    def __init__(self, channel: Any, proof: Proof) -> None:
        self._channel = channel
        self._proof = proof

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers one."""
        return _Proven(self._channel.unary_unary(*arguments, **options), self._proof)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers a stream."""
        return _Proven(self._channel.unary_stream(*arguments, **options), self._proof)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes a stream and answers one message."""
        return _Proven(self._channel.stream_unary(*arguments, **options), self._proof)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method of two streams."""
        return _Proven(self._channel.stream_stream(*arguments, **options), self._proof)

    async def __aenter__(self) -> ProvenChannel:
        await self._channel.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._channel.__aexit__(*error)

    def __enter__(self) -> ProvenChannel:
        return self

    def __exit__(self, *error: Any) -> None:
        self._channel.close()


class _Proven:
    def __init__(self, method: Any, proof: Proof) -> None:
        self._method = method
        self._proof = proof

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._method(*arguments, metadata=self._proof.metadata(), **options)

    def future(self, *arguments: Any, **options: Any) -> Any:
        """The blocking kind, on its way."""
        return self._method.future(*arguments, metadata=self._proof.metadata(), **options)
