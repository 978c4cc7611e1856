"""Methods of a gRPC server, found by name, with the checks that every call meets before its handler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from .callers import FleetCheck
from .malformed_messages import reading
from .shared_secret import OPEN, CallerCheck
from .statuses import refused
from .unread_answers import STRANGER, UnreadAnswers
from .unread_calls import StrangersCalls


class Methods:
    """The registry of a server's services: methods are found by name when a call comes. gRPC can also wait for the next
    call of each method in a task of its own, but then looks at all of those tasks at each call: with a gateway's two
    dozen methods that is a sixth of the node's time for a single submission."""

    def __init__(
        self,
        server: grpc.aio.Server,
        unread: UnreadAnswers,
        entry: CallerCheck | None,
        fleet: FleetCheck | None = None,
    ) -> None:
        self._server = server
        self._unread = unread
        self._entry = None if fleet is not None else entry  # on this machine a secret, beyond it certificates
        self._fleet = fleet

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Registers methods by name, behind the checks."""
        self._server.add_generic_rpc_handlers(
            [_Asked(each, self._unread, self._entry, self._fleet) for each in handlers]
        )

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Does nothing: generated code registers the same methods twice, first as generic ones."""


class _Asked(grpc.GenericRpcHandler):
    """Methods for admitted callers, whose answers are counted until they are read."""

    def __init__(
        self,
        inner: grpc.GenericRpcHandler,
        unread: UnreadAnswers,
        entry: CallerCheck | None,
        fleet: FleetCheck | None,
    ) -> None:
        self._inner = inner
        self._unread = unread
        self._entry = entry
        self._fleet = fleet
        self._found: dict[str, Any] = {}
        self._strangers = StrangersCalls(lambda context: unread.hold(context, STRANGER))

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """The handler of a call; None: this service has no such method."""
        found = self._found.get(details.method)
        if found is None:
            found = self._inner.service(details)
            if found is not None:
                found = self._found[details.method] = self._checked(found, details.method)
        entry = self._entry
        if found is None or entry is None or entry.admits_call(details.method, details.invocation_metadata):
            return found
        return refusing(entry, self._unread)

    def _checked(self, handler: Any, path: str) -> Any:
        """The handler behind the checks of its caller, of answers that this has not read, and of the message itself."""
        handler = reading(handler, path, lambda context: self._unread.hold(context, STRANGER))
        if handler.unary_unary is not None:
            handler = self._unread.counted(handler, STRANGER if path == OPEN else 0)
        if path == OPEN:
            return self._strangers.taken_in_turn(handler)
        return handler if self._fleet is None else self._fleet.guarded(handler, path)


def refusing(entry: CallerCheck, unread: UnreadAnswers) -> Any:
    """A handler that refuses every call and reads nothing of it. It is one of streams for all methods, which callers
    cannot tell apart: for one message gRPC would read that whole before it asks the handler, however large it is."""

    async def refuse(_: Any, context: Any) -> None:
        unread.hold(context, STRANGER)
        await context.abort(*refused(entry.refusal()))

    return grpc.stream_stream_rpc_method_handler(refuse)
