"""Carriers of streams, chosen by the address: gRPC for `host:port`, a plain socket for `direct:host:port` and
`direct:@name`."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.address import listening_address
from .bounds import USUAL, Endings, PeerBounds
from .channel import MAX_MESSAGE, NETWORK, dial
from .direct import NAMED, SCHEME, DirectChannel, DirectServer
from .grpc_stream import GrpcChannel
from .not_listening import not_listening
from .shared_secret import ENTRY
from .stream import Listener, StreamChannel, StreamHandler, StreamMethod


def dial_streams(address: str) -> StreamChannel:
    """A channel that opens streams to a part of the platform."""
    if address.startswith(SCHEME) and NETWORK.get() is None:
        return DirectChannel(address, MAX_MESSAGE)
    return GrpcChannel(dial(address), address)


async def serve_streams(
    address: str,
    handlers: Mapping[StreamMethod, StreamHandler],
    bounds: PeerBounds = USUAL,
    endings: Endings | None = None,
    *,
    chosen_by: str = "",
) -> tuple[Listener, str]:
    """Starts a server of streams alone on `direct:host:port` (port 0: any free one) or `direct:@name`, and returns it
    with its actual address. Connections that it refuses or ends at these bounds are noted in `endings`. `chosen_by`:
    the setting of the address, as in `channel.serve`. (Over gRPC `channel.serve` serves streams beside all else.)

    Raises ConfigError beyond loopback, where only gRPC is spoken, AlreadyInUse for a taken port.
    """
    server = DirectServer(handlers, MAX_MESSAGE, bounds.within_files(), endings or Endings(), ENTRY.get())
    if address.startswith(NAMED):
        await server.listen_named(address.removeprefix(NAMED))
        return server, address
    host, port = listening_address(address.removeprefix(SCHEME))
    try:
        bound = await server.listen(host, port)
    except OSError:
        raise not_listening(address, chosen_by) from None
    return server, f"{SCHEME}{host}:{bound}"
