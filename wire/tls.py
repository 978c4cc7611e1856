"""TLS of gRPC with the certificates of this process, read anew for each connection so that renewed ones are used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from ..foundation.certificates import Certificates, Identity, certificates
from ..foundation.clock import SYSTEM_CLOCK
from ..foundation.shown_token import Credentials, shown_token
from ..foundation.x509_checks import PeerCertificate, out_of_time
from ..model.address import SECURED, read_address, wants_tls
from ..model.errors import ConfigError


def securing(address: str, shown: Credentials | None = None) -> Certificates | None:
    """The certificates to dial or serve an address with; None: no TLS there."""
    if not wants_tls(address):
        return None
    return certificates() if shown is None else shown.certificates


def dialing(address: str, shown: Credentials | None = None) -> Certificates | None:
    """The certificates to dial an address with; None: no TLS there. Raises ConfigError where TLS was asked for, or a
    token would be shown, and there are no certificates: nothing of it may travel in the clear."""
    found = securing(address, shown)
    if found is not None:
        found.now()  # bad files are told at once
    elif wants_tls(address) and (address.startswith(SECURED) or shown_token()):
        raise ConfigError(
            f"{address} is called over TLS only, and this process has no certificates: TAILRACE_TLS names a folder "
            "with tls.crt, tls.key and ca.crt, or with ca.crt alone for a caller with a token"
        )
    return found


def bare(address: str) -> str:
    """An address as gRPC takes it."""
    return address.removeprefix(SECURED)


def server_credentials(found: Certificates) -> grpc.ServerCredentials:
    """Credentials of a server that asks for a certificate of its fleet."""
    return _credentials(found, certified=True)


def token_credentials(found: Certificates) -> grpc.ServerCredentials:
    """Credentials of a server that asks for no certificate: its callers show a token."""
    return _credentials(found, certified=False)


def _credentials(found: Certificates, *, certified: bool) -> grpc.ServerCredentials:
    """Credentials that show the certificate as it is when somebody connects. gRPC speaks TLS 1.2 or newer."""
    shown = found.serving().number

    def changed() -> grpc.ServerCertificateConfiguration | None:
        """The new certificate, if it changed; gRPC asks in a thread of its own whenever somebody connects."""
        nonlocal shown
        now = found.now()
        if now.number == shown or now.caller is None:
            return None
        shown = now.number
        return _shown(now)

    first = _shown(found.serving())
    return grpc.dynamic_ssl_server_credentials(first, changed, require_client_authentication=certified)  # type: ignore[arg-type]


def _shown(identity: Identity) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(identity.key, identity.certificate)], identity.authority)


def channel_credentials(identity: Identity) -> grpc.ChannelCredentials:
    """Credentials of the dialing side."""
    return grpc.ssl_channel_credentials(identity.authority, identity.key or None, identity.certificate or None)


#: Texts of gRPC for a connection over TLS that failed, each with its meaning.
_MEANING = (
    (
        "certificate has expired",
        "its certificate has expired, or the clock here is wrong; `tailrace auth renew` makes another one",
    ),
    ("Hostname Verification", "its certificate is not for this name; issue it one with `--host {host}`"),
    ("unsupported certificate purpose", "its certificate is for callers only; issue it one with `--host {host}`"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS, so it cannot prove who it is"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is of another fleet than {folder}"),
    ("BAD_SIGNATURE", "its certificate is of another fleet than {folder}"),
    ("Socket closed", "it hung up on {me}: another fleet's, or an expired one; or it does not speak TLS"),
    ("Connection reset", "it hung up on {me}: another fleet's, or an expired one; or it does not speak TLS"),
)
_UNKNOWN = (
    "it hung up: beyond one machine parts speak TLS, and this process has no certificates. `tls: FOLDER` in "
    "access.yaml, or TAILRACE_TLS, names them; `tailrace auth init` makes some"
)


def meaning(details: str, address: str, shown: Credentials | None = None) -> str:
    """The reason why a connection over TLS failed, from the details of gRPC's error; empty: TLS was not the reason."""
    if not details.startswith("failed to connect") or not wants_tls(address):
        return ""
    said = next((each for each in _MEANING if each[0] in details), None)
    if said is None:
        return ""
    found = securing(address, shown)
    if found is None:
        return _UNKNOWN
    identity = found.now()
    me = identity.caller
    if me is not None and (
        why := out_of_time(PeerCertificate(me, identity.since, identity.until), SYSTEM_CLOCK.wall())
    ):
        return f"{why} ({found.folder})"
    there = read_address(bare(address))
    return said[1].format(
        host="" if there is None else there.bare_host,
        folder=found.folder,
        me=f"the certificate of {me} ({found.folder})"
        if me is not None
        else f"a caller without a certificate ({found.folder}); a caller with a token uses a gateway's `token_listen`",
    )


class RemadeChannel:
    """A channel of gRPC whose calls go over the connections that are right now. `state` tells what they depend on (the
    number of the certificates in force, an address), and how a channel for that is made; `awaited`: its `close` must be
    awaited. Calls on the former channel go on until the state changes once more."""

    def __init__(self, state: Callable[[], tuple[Any, Callable[[], Any]]], *, awaited: bool = True) -> None:
        self._state = state
        self._awaited = awaited
        self._lock = threading.Lock()
        self._made_for: Any = None
        self._channels: list[Any] = []  # the former one, and the one in use
        self._closing: set[asyncio.Task[None]] = set()

    def _now(self) -> Any:
        wanted, make = self._state()
        with self._lock:
            if wanted != self._made_for:
                self._made_for = wanted
                self._channels.append(make())
                for former in self._channels[:-2]:
                    self._end(former)
                del self._channels[:-2]
            return self._channels[-1]

    def _end(self, channel: Any) -> None:
        ended = channel.close()
        if self._awaited:
            task = asyncio.ensure_future(ended)
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers one."""
        return _Remade(self._now, "unary_unary", arguments, options)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes one message and answers a stream."""
        return _Remade(self._now, "unary_stream", arguments, options)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        """A method that takes a stream and answers one message."""
        return _Remade(self._now, "stream_unary", arguments, options)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        """A method with a stream in both directions."""
        return _Remade(self._now, "stream_stream", arguments, options)

    async def __aenter__(self) -> RemadeChannel:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    def close(self, grace: float | None = None) -> Any:
        """Closes all channels; to be awaited for those of an event loop."""
        with self._lock:
            open_, self._channels, self._made_for = self._channels, [], None
        return _closed(open_, grace) if self._awaited else [each.close() for each in open_]


async def _closed(channels: Iterable[grpc.aio.Channel], grace: float | None) -> None:
    await asyncio.gather(*(each.close(grace) for each in channels))


class _Remade:
    """A method of the channel that is in use at each call."""

    def __init__(self, channel: Callable[[], Any], kind: str, arguments: Any, options: Any) -> None:
        self._channel = channel
        self._kind = kind
        self._arguments = arguments
        self._options = options
        self._of: Any = None
        self._method: Any = None

    def _now(self) -> Any:
        channel = self._channel()
        if channel is not self._of:
            self._of, self._method = channel, getattr(channel, self._kind)(*self._arguments, **self._options)
        return self._method

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._now()(*arguments, **options)

    def future(self, *arguments: Any, **options: Any) -> Any:
        """Starts a blocking call and returns its future."""
        return self._now().future(*arguments, **options)
