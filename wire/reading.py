"""Bytes that are no message of their method: the call is refused as InvalidRequest, and the log has a line of it.

gRPC by itself takes them for a failure of the handler: UNKNOWN for whoever sent them, a traceback in the log, and one
more on standard error where the caller has gone meanwhile. So what it reads a message with never fails: an error takes
the message's place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from ..foundation.listener_logs import words
from ..model.errors import InvalidRequest
from .statuses import status_of

_LOG = logging.getLogger("tailrace.wire")


class NoMessage(InvalidRequest):
    """Stands for a message that could not be read."""


def reader(kind: Any, path: str) -> Callable[[bytes], Any]:
    """Reads messages of a protobuf class for a method; for bytes that are none NoMessage, and the log has a line."""
    return _logged(_never_failing(kind.FromString, path))


def reading(handler: Any, path: str, hold: Callable[[Any], None]) -> Any:
    """The handler of a method that is given nothing but messages. Of a call with two streams its own stream sees to
    that (`grpc_stream.py`). One that answers with many writes them; none is a generator, nor takes a stream alone.
    `hold` is told of each call that is refused. It stands behind the check of callers, which is given what cannot be
    read as well: a stranger is told that it is one, and writes no lines to the log."""
    read = handler.request_deserializer and _never_failing(handler.request_deserializer, path)
    if handler.request_streaming:
        return grpc.stream_stream_rpc_method_handler(
            handler.stream_stream, read and _logged(read), handler.response_serializer
        )
    answer = handler.unary_stream or handler.unary_unary

    async def method(request: Any, context: Any) -> Any:
        if request.__class__ is NoMessage:
            _LOG.warning("%s", request)
            hold(context)
            await context.abort(*status_of(request))
        return await answer(request, context)

    make = grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
    return make(method, read, handler.response_serializer)


def _never_failing(read: Callable[[bytes], Any], path: str) -> Callable[[bytes], Any]:
    def message(data: bytes) -> Any:
        try:
            return read(data)
        except DecodeError as error:
            return NoMessage(f"bytes that cannot be read: {path}: {words(error)}")

    return message


def _logged(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def message(data: bytes) -> Any:
        found = read(data)
        if found.__class__ is NoMessage:
            _LOG.warning("%s", found)
        return found

    return message
