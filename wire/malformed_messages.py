"""Malformed messages, bytes that are no message of their method: the call is refused as InvalidRequest, with a line in
the log.

gRPC by itself takes them for a failure of the handler: UNKNOWN for the sender, a traceback in the log, and one more on
standard error where the caller has gone meanwhile. So the function that reads messages never fails: an error takes the
message's place.
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
    """The error in the place of a message that could not be read."""


def reader(kind: Any, path: str) -> Callable[[bytes], Any]:
    """Makes a function that reads messages of a protobuf class for a method; for malformed bytes it returns NoMessage,
    and logs a line."""
    return _logged(_never_failing(kind.FromString, path))


def reading(handler: Any, path: str, hold: Callable[[Any], None]) -> Any:
    """Makes the handler of a method get well-formed messages only; for a call with two streams `grpc_stream.py` sees to
    that. A handler that answers with many messages writes them; none is a generator, nor takes a stream alone. `hold`
    is told of each call that is refused. The check of callers comes first, also for malformed messages: a stranger is
    told that it is one, and causes no lines in the log."""
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
