"""Calls of which nothing is read before their callers are known.

For a method of one message gRPC reads that whole before it asks the handler, so anybody could have a server keep as
many bytes as it takes calls. Such a method is therefore served as one of streams, which callers cannot tell apart: its
handler is asked when the call begins, and reads the message itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from ..model.errors import InvalidRequest
from .statuses import refused

#: Seconds in which a caller that nobody knows has to send its one message: it comes with the call, in one packet.
STRANGERS_WITHIN = 0.2
#: Calls of one connection that may wait for that.
WAITING = 16
#: Connections that did not, and are read from no more, which are remembered.
REMEMBERED = 1024

Admit = Callable[[Any], Awaitable[Any]]


class NotRead(InvalidRequest):
    """The error in the place of a message that was not read yet."""


NOT_READ = NotRead("the message was not read yet")


def asked_first(handler: Any, admit: Admit, within: float) -> Any:
    """The handler of a method of one message, as one of streams: it awaits `admit` with the call's context, which ends
    the call of a caller that may not make it, and then the message, for `within` seconds."""

    async def message(context: Any) -> Any:
        await admit(context)
        return await _read(context, within)

    return _of_streams(handler, message)


class StrangersCalls:
    """The calls that anybody may make, whose callers nobody knows: their messages are read one at a time, and those of
    a connection that kept others waiting for STRANGERS_WITHIN no more. Of a connection
    WAITING calls may wait; more are refused."""

    def __init__(self, hold: Callable[[Any], None]) -> None:
        self._hold = hold
        self._turn = asyncio.Lock()
        self._slow: dict[str, None] = {}
        self._waiting: Counter[str] = Counter()

    def taken_in_turn(self, handler: Any) -> Any:
        """The handler of a method of one message that anybody may call."""
        return _of_streams(handler, self._message)

    async def _message(self, context: Any) -> Any:
        peer = context.peer()
        if peer not in self._slow and self._waiting[peer] < WAITING:
            self._waiting[peer] += 1
            try:
                async with self._turn:
                    if peer not in self._slow:
                        return await _read(context, STRANGERS_WITHIN)
            except TimeoutError:
                self._slow[peer] = None
                if len(self._slow) > REMEMBERED:
                    del self._slow[next(iter(self._slow))]
            finally:
                self._waiting[peer] -= 1
                if not self._waiting[peer]:
                    del self._waiting[peer]
        self._hold(context)
        raise TimeoutError


def _of_streams(handler: Any, message: Callable[[Any], Awaitable[Any]]) -> Any:
    answer = handler.unary_stream or handler.unary_unary

    async def method(_: Any, context: Any) -> None:
        try:
            request = await message(context)
        except TimeoutError:
            await context.abort(*refused("the call's message did not come in time"))
        if request is grpc.aio.EOF:
            await context.abort(*refused("the call has no message"))
        answered = await answer(request, context)
        if not handler.response_streaming:
            await context.write(answered)

    return grpc.stream_stream_rpc_method_handler(method, handler.request_deserializer, handler.response_serializer)


async def _read(context: Any, within: float) -> Any:
    async with asyncio.timeout(within):
        return await context.read()
