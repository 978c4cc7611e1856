"""Channels and servers of gRPC with this platform's bounds: TLS beyond loopback, message sizes, keep-alive.

Sessions use `stream.py` instead, over the carrier that `carriers.py` chooses."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import grpc

from ..foundation.certificates import Certificates
from ..foundation.looked_for import LookedFor
from ..foundation.shown_token import Credentials
from ..model.address import SECURED, listening_address, read_address
from ..model.errors import ConfigError, NotConnected, TailraceError
from .bounds import USUAL, Endings, PeerBounds
from .callers import FleetCheck, TokenDoor
from .direct import SCHEME
from .methods import Methods
from .not_listening import not_listening
from .shared_secret import ENTRY, Proof, ProvenChannel, RefusedCall, raised
from .statuses import CallStatus, error_of_status, status_of
from .tls import (
    RemadeChannel,
    bare,
    channel_credentials,
    dialing,
    meaning,
    securing,
    server_credentials,
    token_credentials,
)
from .unread_answers import STRANGER, UnreadAnswers

#: The largest gRPC message: a batch is cut at 1 MiB beside its largest payload, which is at most 4 MiB by default.
MAX_MESSAGE = 16 << 20

#: Calls that a server keeps until its event loop takes them. gRPC's own bounds of 1,000 and 3,000 cancel calls at
#: random in a burst from one client; what a part takes is for the part to say (Overloaded).
_BURST = 20_000

#: Milliseconds that gRPC gives one attempt to connect, however short its pauses between attempts are: room for a round
#: trip of half a second or a first packet that is lost, and short enough to find a host that came back.
_CONNECT_WITHIN = 2_000

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_WITHIN),  # which it takes for the time to connect, not for a pause
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.so_reuseport", 0),
    ("grpc.use_local_subchannel_pool", 1),
]

_SERVER_OPTIONS: list[tuple[str, int]] = [
    # Bytes of a call that come before anybody asked who calls; without the probe a connection gets ever more of them.
    # Somebody known is given room for a whole message when its length has come.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 8 << 10),
    ("grpc.server.max_pending_requests", _BURST),
    ("grpc.server.max_pending_requests_hard_limit", 2 * _BURST),
]

#: Calls of all peers that a server has inside; beyond it they are refused. Each takes some kilobytes of gRPC's own.
_CALLS_IN_ALL = 2 * _BURST


def _bounded(bounds: PeerBounds) -> list[tuple[str, int]]:
    """The bounds as options of gRPC, which closes connections beyond their number without a word."""
    return [
        ("grpc.max_allowed_incoming_connections", bounds.connections),
        ("grpc.max_concurrent_streams", bounds.calls),
        ("grpc.server_handshake_timeout_ms", int(bounds.greeting * 1000)),
        ("grpc.max_connection_idle_ms", int(bounds.idle * 1000)),
    ]


class Network(Protocol):
    """A network that carries calls in place of gRPC: with channels and servers of the same shape."""

    def dial(self, address: str) -> grpc.aio.Channel: ...

    async def serve(
        self, address: str, register: Sequence[Callable[[grpc.aio.Server], None]]
    ) -> tuple[grpc.aio.Server, str]: ...


#: The network of the code that is running; None: gRPC over real sockets. A simulation sets its own.
NETWORK: contextvars.ContextVar[Network | None] = contextvars.ContextVar("tailrace-network", default=None)


def dial(address: str, shown: Credentials | None = None) -> grpc.aio.Channel:
    """A channel to a part of the platform. It connects by itself, and again after a break. `shown`: the credentials
    that its calls show beyond this machine; default: those of the process."""
    network = NETWORK.get()
    if network is not None:
        return network.dial(address)
    if isinstance(address, LookedFor):
        return cast(grpc.aio.Channel, RemadeChannel(lambda: _where(address, lambda there: dial(there, shown))))
    _for_calls(address)
    channel: Any
    options = _dialing(address)
    if (found := dialing(address, shown)) is not None:
        channel = RemadeChannel(
            lambda: _certified(found, lambda given: grpc.aio.secure_channel(bare(address), given, options=options))
        )
    else:
        channel = grpc.aio.insecure_channel(bare(address), options=options)
    return cast(grpc.aio.Channel, ProvenChannel(channel, Proof(address, shown), RefusedCall))


def dial_blocking(address: str, shown: Credentials | None = None) -> grpc.Channel:
    """A channel for blocking calls, like `dial`. They also work in a process forked from one that made some."""
    _for_calls(address)
    channel: Any
    options = _dialing(address)
    if (found := dialing(address, shown)) is not None:
        channel = RemadeChannel(
            lambda: _certified(found, lambda given: grpc.secure_channel(bare(address), given, options=options)),
            awaited=False,
        )
    else:
        channel = grpc.insecure_channel(bare(address), options=options)
    return cast(grpc.Channel, ProvenChannel(channel, Proof(address, shown), raised))


def _dialing(address: str) -> list[tuple[str, int]]:
    """The options of a channel: what stays on this machine goes to no proxy, whatever the environment names."""
    there = read_address(bare(address))
    return [*_OPTIONS, ("grpc.enable_http_proxy", 0)] if there is not None and there.loopback else _OPTIONS


def _certified(found: Certificates, make: Callable[[grpc.ChannelCredentials], Any]) -> tuple[int, Callable[[], Any]]:
    identity = found.now()
    return identity.number, lambda: make(channel_credentials(identity))


def _where(address: LookedFor, make: Callable[[str], Any]) -> tuple[str, Callable[[], Any]]:
    there = address.now()
    return there, lambda: make(there)


async def serve(
    address: str,
    register: Sequence[Callable[[grpc.aio.Server], None]],
    bounds: PeerBounds = USUAL,
    endings: Endings | None = None,
    door: TokenDoor | None = None,
    *,
    chosen_by: str = "",
) -> tuple[grpc.aio.Server, str]:
    """Starts a server on `host:port` (port 0: any free one) and returns it with its actual address. Connections and
    calls that it refuses or ends at these bounds are noted in `endings`. `door`: a second address, for callers with a
    token. `chosen_by`: the setting of the address for error messages, such as "`listen` in gateway.yaml".

    Beyond loopback it speaks TLS and admits the fleet of its certificates, each caller to the calls of its role. Raises
    ConfigError there without certificates, and for a name or an address that this machine does not have; AlreadyInUse
    for a taken port.
    """
    network = NETWORK.get()
    if network is not None:
        return await network.serve(address, register)
    bounds = bounds.within_files()
    found = securing(address)
    host = listening_address(address, secured=found is not None).host
    server = grpc.aio.server(
        options=[*_OPTIONS, *_SERVER_OPTIONS, *_bounded(bounds)], maximum_concurrent_rpcs=_CALLS_IN_ALL
    )
    unread = UnreadAnswers(bounds, endings or Endings())
    tokens = None if door is None else door.tokens
    fleet = None
    if found is not None:
        fleet = FleetCheck(found, tokens, lambda context: unread.hold(context, STRANGER), within=bounds.frame)
    methods = Methods(server, unread, ENTRY.get(), fleet)
    for add in register:
        add(cast(grpc.aio.Server, methods))
    try:
        if found is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(bare(address), server_credentials(found))
    except RuntimeError:
        raise not_listening(address, chosen_by) from None
    if door is not None:
        _open(door, server, found)
    await server.start()
    return server, f"{SECURED if address.startswith(SECURED) else ''}{host}:{bound}"


def _open(door: TokenDoor, server: grpc.aio.Server, found: Certificates | None) -> None:
    """Opens the address for callers with a token: TLS that asks for no certificate of theirs."""
    if found is None:
        raise ConfigError(
            f"tokens are taken at {door.listen} only beside a listener with certificates: `listen` beyond loopback, or "
            "tls:HOST:PORT"
        )
    host = listening_address(door.listen, secured=True).host
    try:
        bound = server.add_secure_port(bare(door.listen), token_credentials(found))
    except RuntimeError:
        raise not_listening(door.listen, "`token_listen` in gateway.yaml") from None
    door.address = f"{SECURED}{host}:{bound}"


def check_listen(address: str) -> None:
    """Raises ConfigError for an address that `serve` can never listen on, early."""
    if NETWORK.get() is None:
        listening_address(address, secured=securing(address) is not None)


def _for_calls(address: str) -> None:
    if address.startswith(SCHEME):
        raise ConfigError(f"{address} carries sessions only; calls need an address that answers gRPC: host:port")


async def abort(context: Any, error: TailraceError) -> None:
    """Ends a server call with the status and class of an error."""
    await context.abort(*status_of(error))


def error_of(error: Any, address: str, reason: str = "", shown: Credentials | None = None) -> TailraceError:
    """The error that a gRPC error (blocking or asyncio) stands for: the other side's own, or NotConnected. `reason`:
    why this address was asked, appended to the message of NotConnected."""
    if said := meaning(error.details() or "", address, shown):
        return NotConnected(f"{address} is not connected: {said}{reason}")
    metadata = tuple((key, str(value)) for key, value in error.trailing_metadata() or ())
    return error_of_status(CallStatus(error.code(), error.details() or "", metadata), address, reason)
