"""Streams over gRPC (`stream.py`): each is a call of a method with a stream in both directions."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio

from ..model.errors import TailraceError
from .channel import abort, error_of
from .malformed_messages import NoMessage
from .stream import StreamClosed, StreamHandler, StreamMethod
from .tls import meaning

#: The text of gRPC's error for sending into a call that ended and whose end was not read yet. gRPC then forgets how it
#: ended.
_ENDED_MEANWHILE = "Internal error from Core"
#: Errors of grpc.aio once a call is over; a CancelledError too, unless the waiting task was cancelled itself.
_OVER = (grpc.RpcError, asyncio.InvalidStateError, asyncio.CancelledError)


class GrpcChannel:
    """Opens streams over a gRPC channel to `address`."""

    def __init__(self, channel: grpc.aio.Channel, address: str) -> None:
        self._channel = channel
        self._address = address

    def open(self, method: StreamMethod) -> GrpcStream:
        call = self._channel.stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.reply.FromString,
        )
        return GrpcStream(call(), self._address)

    async def close(self) -> None:
        await self._channel.close()


class GrpcStream:
    """One side of a stream: over a call of grpc.aio on the dialing side, over its context on the serving side. `peer`
    names the other side in errors."""

    def __init__(self, call: Any, peer: str) -> None:
        self._call = call
        self._peer = peer

    async def send(self, message: Any, /) -> None:
        try:
            await self._call.write(message)
        except _OVER as error:
            raise StreamClosed(_why(error, self._peer), _raised(error, self._peer)) from None

    async def receive(self) -> Any | None:
        try:
            message = await self._call.read()
        except _OVER as error:
            raise StreamClosed(_why(error, self._peer), _raised(error, self._peer)) from None
        if message.__class__ is NoMessage:
            raise message
        return None if message is grpc.aio.EOF else message

    def cancel(self) -> Any:
        return self._call.cancel()


async def serve_stream(handle: StreamHandler, context: Any) -> None:
    """Serves a stream of grpc.aio, as a method of a servicer does, given the call's context."""
    try:
        await handle(GrpcStream(context, "the caller"))
    except StreamClosed:
        pass  # the caller was gone before the answer
    except TailraceError as error:
        await abort(context, error)


def _why(error: BaseException, peer: str) -> str:
    """The reason why a call is over. Raises the error if it is this task's own cancellation."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
        return "the other side cancelled the connection"
    if not isinstance(error, grpc.aio.AioRpcError):
        return str(error)
    details = error.details() or ""
    if details == _ENDED_MEANWHILE:
        return "the other side ended the connection while something was sent"
    return meaning(details, peer) or details or str(error)


def _raised(error: BaseException, peer: str) -> TailraceError | None:
    """The TailraceError that a call ended with; None: it ended with none."""
    if not isinstance(error, grpc.aio.AioRpcError) or error.details() == _ENDED_MEANWHILE:
        return None
    return error_of(error, peer)
