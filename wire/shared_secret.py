"""The shared secret of a platform: a caller on its machine may call when it knows the secret on the platform's card (a
file in the run directory, `foundation/run_dir.py`).

A server that was given a `CallerCheck` asks each call for the secret, except health checks. A caller shows a part of
this machine the secrets that it can read (`Proof`), once the kernel has said that the listener is the user with that
card, or root. Another user who took the port while the platform was down is told nothing, and not called at all: it
would get every submission, and could hand a worker any payload.
"""

from __future__ import annotations

import contextvars
import hmac
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata

from ..foundation.certificates import certificates
from ..foundation.port_listeners import listeners
from ..foundation.run_dir import VARIABLE, Card, cards, user_name
from ..foundation.shown_token import Credentials, shown_token
from ..model.address import read_address, wants_tls

#: The metadata that shows a secret.
SHOWN_KEY = "tailrace-secret"
#: The metadata that shows a token, and the prefix of the token there.
AUTHORIZATION, BEARER = "authorization", "Bearer "
#: The call that needs no secret, a question with one answer. Watching health needs it like all else.
OPEN = "/grpc.health.v1.Health/Check"
#: Seconds for which the secret that was found is shown without another look: the port may be somebody else's by then.
LOOK_AGAIN = 1.0


class CallerCheck:
    """The check of a server's callers: a secret, which is on the card of `directory`, of the user `owner`."""

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
        """The message for a caller that was not admitted."""
        directory = self.card.directory
        if self.group:
            way = f"members of the group {self.group!r} get in with {VARIABLE}={directory}"
        else:
            way = (
                f"call it as that user (whose {VARIABLE} is {directory}), or have it name a group that may: access.yaml"
            )
        return f"this platform is run by {user_name(self.card.owner)}, and the call did not show its secret: {way}"


#: The check of the servers that the running code starts; None: they check nobody. Every command sets it.
ENTRY: contextvars.ContextVar[CallerCheck | None] = contextvars.ContextVar("tailrace-entry", default=None)


class Proof:
    """The secret to show to a listener at an address of this machine (host:port), if that may be called. It is looked
    for at each call until it is found, since a part may start before its platform; and again after LOOK_AGAIN, since
    another platform may listen by then."""

    def __init__(self, address: str, shown: Credentials | None = None) -> None:
        self._address = address
        self._token = "" if shown is None else shown.token
        there = read_address(address.removeprefix("direct:"))
        self._host = "" if there is None else there.host
        self._port = there.port if there is not None and there.loopback else 0
        given = None if shown is None else shown.certificates
        self._certificates = (given or certificates()) if wants_tls(address) else None
        self._found: tuple[tuple[str, str], ...] | None = None
        self._again = 0.0

    def listening(self) -> set[int] | None:
        """The ids of the users who listen there now; empty on another machine. None: the system does not say."""
        return listeners(self._host, self._port) if self._port else set()

    def metadata(self) -> tuple[tuple[str, str], ...] | None:
        """The metadata of a call over gRPC: the secret; for another machine a token, if there is no certificate. Raises
        AioRpcError (UNAVAILABLE) where a stranger listens."""
        if self._certificates is not None:
            certified = self._certificates.now().caller is not None
            token = self._token or ("" if certified else shown_token())
            return ((AUTHORIZATION, f"{BEARER}{token}"),) if token else None
        if self._port and (not self._found or time.monotonic() >= self._again):
            self._found = None
            self._found = tuple((SHOWN_KEY, secret) for secret in shown_to(self.listening(), self._address)) or None
            self._again = time.monotonic() + LOOK_AGAIN
        return self._found


def shown_to(listening: set[int] | None, where: str) -> tuple[str, ...]:
    """All secrets that may be shown to these listening users. Raises AioRpcError where one of them is a stranger."""
    known = [*cards()]
    if strangers := strangers_among(listening, [os.geteuid(), *(card.owner for card in known)]):
        raise AioRpcError(
            StatusCode.UNAVAILABLE,
            Metadata(),
            Metadata(),
            f"{where} is not called: another user of this machine ({user_name(min(strangers))}) listens there. If that "
            f"user's platform is meant, set {VARIABLE} to its run directory, which its group may read: access.yaml",
        )
    return showable(known, listening)


def strangers_among(listening: set[int] | None, known: Iterable[int]) -> set[int]:
    """The listening users that are neither root nor one of the known. `listening` None: the system does not say."""
    return (listening or set()) - {0, *known}


def showable(known: Iterable[Card], listening: set[int] | None) -> tuple[str, ...]:
    """The secrets that these users may see: each its own; root, who reads all files, any. None for `listening`: the
    system does not say."""
    return tuple(card.secret for card in known if listening is None or (listening and listening <= {0, card.owner}))


def peer_user(connected: Any) -> int | None:
    """The id of the user at the other end of a Unix socket; None: unknown to the system, or another kind of socket."""
    if connected is None or connected.family != socket.AF_UNIX or sys.platform != "linux":
        return None
    _, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


class ProvenChannel:
    """A channel of gRPC, blocking or not, whose calls show the secret or token. `refused` turns the error of a call
    that may not be made into the answer for its caller."""

    def __init__(self, channel: Any, proof: Proof, refused: Callable[[AioRpcError], Any]) -> None:
        self._channel = channel
        self._proof = proof
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers one."""
        return _Proven(self._channel.unary_unary(*arguments, **options), self._proof, self._refused)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers a stream."""
        return _Proven(self._channel.unary_stream(*arguments, **options), self._proof, self._refused)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes a stream and answers one message."""
        return _Proven(self._channel.stream_unary(*arguments, **options), self._proof, self._refused)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method with a stream in both directions."""
        return _Proven(self._channel.stream_stream(*arguments, **options), self._proof, self._refused)

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
    def __init__(self, method: Any, proof: Proof, refused: Callable[[AioRpcError], Any]) -> None:
        self._method = method
        self._proof = proof
        self._refused = refused

    def __call__(self, *arguments: Any, metadata: Sequence[tuple[str, str]] = (), **options: Any) -> Any:
        try:
            shown = self._proof.metadata()
        except AioRpcError as error:
            return self._refused(error)
        return self._method(*arguments, metadata=(*(shown or ()), *metadata) or None, **options)

    def future(self, *arguments: Any, **options: Any) -> Any:
        """Starts a blocking call and returns its future."""
        return self._method.future(*arguments, metadata=self._proof.metadata(), **options)


def raised(error: AioRpcError) -> NoReturn:
    """Raises the error of a blocking call that is refused."""
    raise error


class RefusedCall:
    """A refused call of an event loop: awaiting, reading or writing it raises why."""

    def __init__(self, error: AioRpcError) -> None:
        self._error = error

    def __await__(self) -> Any:
        raise self._error

    def __aiter__(self) -> Any:
        raise self._error

    async def write(self, message: Any) -> None:
        """Raises the error, as a stream's call."""
        raise self._error

    async def read(self) -> Any:
        """Raises the error, as a stream's call."""
        raise self._error

    def cancel(self) -> bool:
        """Answers False: the call is over already."""
        return False
