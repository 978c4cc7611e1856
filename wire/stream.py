"""The protocol of a two-way stream of messages, whatever carries it; sessions run over it.

`grpc_stream.py` carries streams between machines, `direct.py` within one; `carriers.py` chooses by the address.
A carrier keeps messages whole and in order, lets a sender wait while the other side does not receive, and tells each
side of the end. A TailraceError of the serving side is raised again at the dialing side (`statuses.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from ..model.errors import TailraceError


class StreamMethod(NamedTuple):
    """A method that streams are opened for. `path` is `/package.Service/Method`; `request` and `reply` are the protobuf
    classes that the dialing side and the serving side send."""

    path: str
    request: Any
    reply: Any


class StreamClosed(Exception):
    """The stream is over, and the serving side did not end it well: its connection broke, it was refused or given up.

    The text says why. `error` is the serving side's own error, or NotConnected if it does not answer; None: this side
    knew already that the stream was over.
    """

    def __init__(self, why: str, error: TailraceError | None = None) -> None:
        super().__init__(why)
        self.error = error


class Stream(Protocol):
    """One side of a stream."""

    async def send(self, message: Any, /) -> None:
        """Sends a message, once there is room for it. Raises StreamClosed."""

    async def receive(self) -> Any | None:
        """Returns the next message; None: the other side sends no more, and all that it sent was received. One
        receiver at a time. Raises StreamClosed."""


class DialedStream(Stream, Protocol):
    """The dialing side, which may give the stream up at any time."""

    def cancel(self) -> Any:
        """Gives the stream up now, with messages that were not sent yet. Harmless when it is over."""


class StreamChannel(Protocol):
    """Opens streams to one address. Each ends with its connection, and none is opened again by itself."""

    def open(self, method: StreamMethod) -> DialedStream:
        """Makes a new stream, which connects when its first message is sent."""

    async def close(self) -> None:
        """Gives up the open streams."""


#: Serves one stream, and ends it by returning, or by raising a TailraceError.
StreamHandler = Callable[[Stream], Awaitable[None]]


class Listener(Protocol):
    """A server at an address, over any carrier."""

    async def stop(self, grace: float | None) -> None:
        """Takes no new calls, and ends the open ones after `grace` seconds (None: now)."""
