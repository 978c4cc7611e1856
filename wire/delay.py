"""The Delay service: the client half that tailers use, and the server half that a delay service implements."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import grpc

from ..model.backoff import PARK, Backoff
from ..model.errors import InvalidRequest, Overloaded, TailraceError, Unavailable
from ..model.parked import Parked
from ..model.token_calls import need_of
from ..model.workload import FLIGHT_ITEMS, NO_EXTRA, Extra
from .callers import require
from .channel import abort, dial, error_of
from .convert import KindReader, KindWriter, read_items, write_items
from .v1 import delay_pb2 as pb
from .v1.delay_pb2_grpc import DelayServicer, DelayStub, add_DelayServicer_to_server

#: The service's full name, for health checks.
SERVICE = "tailrace.v1.Delay"
#: A call carries at most so many items, and about so many payload bytes.
CALL_ITEMS = FLIGHT_ITEMS
CALL_BYTES = 4 << 20
#: Seconds for one call; how long a service that does not answer is tried.
CALL_TIMEOUT = 10.0
PATIENCE = 30.0

_LOG = logging.getLogger("tailrace.wire.delay")


class Depth(NamedTuple):
    """The depth of a stream: how many items it holds; `wait` is the seconds that each stays, 0 for a due stream."""

    stream: str
    wait: float
    items: int


class Delay(Protocol):
    """The calls that a delay service answers. Both may raise a TailraceError, which is raised again at the caller."""

    async def park(self, items: Sequence[Parked]) -> None: ...

    async def depth(self) -> list[Depth]: ...


class DelayClient:
    """Calls a delay service at `address` (host:port). Made in a running loop; `close` ends it.

    patience  seconds for which a service that does not answer is called again (default 30). A refusal because it is
              full (Overloaded) is raised at once, since a caller that parks must slow down, not wait here
    """

    def __init__(self, address: str, patience: float = PATIENCE, timeout: float = CALL_TIMEOUT) -> None:
        self.address = address
        self._patience = patience
        self._timeout = timeout
        self._channel = dial(address)
        self._stub: Any = DelayStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()

    async def park(self, items: Sequence[Parked]) -> None:
        """Parks items, which are durable when this returns. A call whose answer was lost is repeated: that may make
        copies but loses nothing.

        Raises InvalidRequest, Overloaded, StoreFull, or Unavailable when patience ends; some items may be stored then.
        """
        for chunk in _chunks(items):
            await self._patiently(_request(chunk))

    async def _patiently(self, request: pb.ParkRequest) -> None:
        loop = asyncio.get_running_loop()
        until, backoff = loop.time() + self._patience, Backoff(*PARK, random.random)
        while True:
            try:
                await self._call(self._stub.Park, request)
                return
            except Overloaded:
                raise
            except Unavailable:
                wait = backoff.pause()
                if loop.time() + wait > until:
                    raise
            await asyncio.sleep(wait)

    async def depth(self) -> list[Depth]:
        """The depth of every rung and due stream. Raises Unavailable."""
        reply = await self._call(self._stub.Depth, pb.DepthRequest())
        return [Depth(rung.stream, rung.wait, rung.items) for rung in reply.rungs]

    async def _call(self, method: Any, request: Any) -> Any:
        try:
            return await method(request, timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address) from None


def register(service: Delay) -> Callable[[grpc.aio.Server], None]:
    """Makes the function by which `channel.serve` registers this delay service."""
    return lambda server: add_DelayServicer_to_server(_DelayServicer(service), server)  # type: ignore[no-untyped-call]


class _DelayServicer(DelayServicer):
    def __init__(self, service: Delay) -> None:
        self._service = service

    async def Park(self, request: pb.ParkRequest, context: Any) -> Any:
        async def park() -> pb.ParkReply:
            require(need_of("submit", kind) for kind in request.items.new_kinds)
            await self._service.park(_items(request))
            return pb.ParkReply()

        return await _answered(park, context)

    async def Depth(self, request: pb.DepthRequest, context: Any) -> Any:
        async def depth() -> pb.DepthReply:
            rungs = await self._service.depth()
            return pb.DepthReply(rungs=[pb.RungDepth(stream=r.stream, wait=r.wait, items=r.items) for r in rungs])

        return await _answered(depth, context)


async def _answered(answer: Callable[[], Any], context: Any) -> Any:
    try:
        return await answer()
    except TailraceError as error:
        await abort(context, error)
    except Exception as error:
        _LOG.exception("the delay service failed at a request")
        text = f"the delay service failed: {type(error).__name__}: {error}; see its log"
        await abort(context, TailraceError(text))


def _chunks(items: Sequence[Parked]) -> list[list[Parked]]:
    """Cuts items into requests: by tailer (a request names one), number and bytes."""
    chunks: list[list[Parked]] = []
    size = 0
    for item in items:
        last = chunks[-1] if chunks else None
        if last is None or last[0].tailer != item.tailer or len(last) >= CALL_ITEMS or size >= CALL_BYTES:
            last, size = [], 0
            chunks.append(last)
        last.append(item)
        size += len(item.payload)
    return chunks


def _request(items: Sequence[Parked]) -> pb.ParkRequest:
    request = pb.ParkRequest(
        tailer=items[0].tailer,
        due=[item.due for item in items],
        first_seen=[item.first_seen for item in items],
        reason=[item.reason for item in items],
        fence=[item.fence for item in items],
    )
    if any(item.throttles for item in items):
        request.throttles.extend([item.throttles for item in items])
    if any(item.n for item in items):
        request.partition.extend([item.partition for item in items])
        request.position.extend([item.position for item in items])
        request.n.extend([item.n for item in items])
    extras = {}
    for index, item in enumerate(items):
        extra = Extra(item.key, item.headers, item.crashes, item.expires_at, progress=item.progress)
        if extra != NO_EXTRA:
            extras[index] = extra
    columns = (
        [item.kind for item in items],
        [item.id for item in items],
        [item.payload for item in items],
        [item.attempt for item in items],
    )
    write_items(request.items, KindWriter(), columns, extras)
    return request


def _items(request: pb.ParkRequest) -> list[Parked]:
    try:
        flight = read_items(request.items, KindReader(), 0, 0)
    except KeyError as error:
        raise InvalidRequest(f"park: kind {error} is not among the request's new_kinds") from None
    count = len(flight.ids)
    columns = (
        flight.kinds,
        flight.payloads,
        flight.attempts,
        request.due,
        request.first_seen,
        request.reason,
        request.fence,
    )
    throttles = request.throttles or [0] * count
    rows = (request.partition or [""] * count, request.position or [0] * count, request.n or [0] * count)
    if any(len(column) != count for column in (*columns, throttles, *rows)):
        raise InvalidRequest("park: the columns of a request must be of one length")
    found = []
    for index, (kind, payload, attempt, due, seen, reason, fence) in enumerate(zip(*columns, strict=True)):
        extra = flight.extras.get(index, NO_EXTRA)
        found.append(
            Parked(
                tailer=request.tailer,
                id=flight.ids[index],
                kind=kind,
                payload=payload,
                due=due,
                first_seen=seen,
                attempt=attempt,
                crashes=extra.crashes,
                throttles=throttles[index],
                fence=fence,
                reason=reason,
                key=extra.key,
                headers=extra.headers,
                expires_at=extra.expires_at,
                progress=extra.progress,
                partition=rows[0][index],
                position=rows[1][index],
                n=rows[2][index],
            )
        )
    return found
