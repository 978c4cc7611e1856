"""Unread answers over gRPC: the bytes of answers that were made and not yet read by their callers, by peer.

gRPC keeps an answer until the other side has read it, of as many calls as there are, for as long as the connection
lasts. So the answer of a handler is counted until its call is over. When all answers together pass a bound, the calls
of the peer with most of them are ended, which frees their memory; so are those of a peer that reads nothing for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from .bounds import UNREAD_REPLIES, Endings, PeerBounds

#: Answers of fewer bytes are not counted: a call takes more than that by itself, and the number of calls is bounded.
COUNTED = 2048
#: Bytes that a call counts for that anybody may make, or that was refused, however short its answer is: a lot of them,
#: unread, would else leave no room for all others.
STRANGER = 8192


class _Peer:
    """The unread answers of one connection. Invariant: `size` is the sum of `calls`."""

    def __init__(self, now: float) -> None:
        self.size = 0
        self.moved = now  # when it last took an answer, or had none
        self.calls: dict[asyncio.Task[Any], int] = {}


class UnreadAnswers:
    """The unread answers of one server. Invariant: `size` is the sum of its peers' sizes, and each peer has a call."""

    def __init__(self, bounds: PeerBounds, endings: Endings) -> None:
        self.size = 0
        self._bounds = bounds
        self._endings = endings
        self._peers: dict[str, _Peer] = {}
        self._timer: asyncio.TimerHandle | None = None

    def counted(self, handler: Any, least: int = 0) -> Any:
        """Makes the handler of a method of one message and one answer count its answers, each as at least `least`
        bytes."""
        answer: Callable[[Any, Any], Awaitable[Any]] = handler.unary_unary
        serialize = handler.response_serializer or bytes

        async def method(request: Any, context: Any) -> bytes:
            made = await answer(request, context)
            data: bytes = serialize(made)
            if (size := max(least, len(data))) >= COUNTED:
                self.hold(context, size)
            return data

        return grpc.unary_unary_rpc_method_handler(method, request_deserializer=handler.request_deserializer)

    def stop(self) -> None:
        """Stops the timer that looks for peers that read nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hold(self, context: Any, size: int) -> None:
        """Counts the call that is being answered as so many bytes, until it is over."""
        task = asyncio.current_task()
        if task is None:
            return
        name, loop = context.peer(), asyncio.get_running_loop()
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = _Peer(loop.time())
        peer.calls[task] = size
        peer.size += size
        self.size += size
        context.add_done_callback(lambda _: self._over(name, peer, task))
        if self._timer is None:
            self._timer = loop.call_later(self._bounds.stalled / 2, self._look)
        if self.size > self._bounds.unsent:
            most = max(self._peers, key=lambda each: self._peers[each].size)
            self._end(most, f"all answers that wait have {self.size} bytes, and most are its")

    def _over(self, name: str, peer: _Peer, task: asyncio.Task[Any]) -> None:
        """Counts a call no more: its answer was read, or its peer is gone."""
        size = peer.calls.pop(task, 0)
        peer.size -= size
        self.size -= size
        peer.moved = asyncio.get_running_loop().time()
        if not peer.calls and self._peers.get(name) is peer:
            del self._peers[name]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for name, peer in list(self._peers.items()):
            if loop.time() - peer.moved >= self._bounds.stalled:
                self._end(name, f"it read nothing for {self._bounds.stalled:g} s")
        self._timer = loop.call_later(self._bounds.stalled / 2, self._look) if self._peers else None

    def _end(self, name: str, why: str) -> None:
        peer = self._peers[name]
        what = f"{len(peer.calls)} calls of {name} with {peer.size} bytes of unread answers were ended: {why}"
        self._endings.note(UNREAD_REPLIES, what)
        for task in list(peer.calls):
            task.cancel()
            self._over(name, peer, task)
