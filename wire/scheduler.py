"""The Scheduler service: a client for single calls (`SchedulerClient`), one for sessions (`SchedulerSessions`), and the
serving half of both (`serve_scheduler`; `sessions` without gRPC)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import grpc

from ..model.errors import TailraceError
from ..model.workload import Ended, Headers, Kind
from .bounds import USUAL
from .carriers import dial_streams
from .channel import abort, dial, error_of
from .convert import headers_to_wire
from .grpc_stream import serve_stream
from .stream import DialedStream, Stream, StreamHandler, StreamMethod
from .v1 import scheduler_pb2 as pb
from .v1.scheduler_pb2_grpc import SchedulerServicer, SchedulerStub, add_SchedulerServicer_to_server

#: The service's full name, for health checks.
SERVICE = "tailrace.v1.Scheduler"
#: The streams of sessions.
TAILER_SESSION = StreamMethod(f"/{SERVICE}/AttachTailer", pb.TailerFrame, pb.TailerReply)
WORKER_SESSION = StreamMethod(f"/{SERVICE}/AttachWorker", pb.WorkerFrame, pb.WorkerReply)


class SchedulerSessions:
    """Opens connections of sessions with the scheduler at `address` (host:port, or direct:host:port on its machine):
    streams for a Dialer. Made in a running loop; `close` ends them all."""

    def __init__(self, address: str) -> None:
        self._channel = dial_streams(address)

    def attach_tailer(self) -> DialedStream:
        """A new connection for a tailer's session."""
        return self._channel.open(TAILER_SESSION)

    def attach_worker(self) -> DialedStream:
        """A new connection for a worker's session."""
        return self._channel.open(WORKER_SESSION)

    async def close(self) -> None:
        """Gives up the connections that are open."""
        await self._channel.close()


class SchedulerClient:
    """Calls a scheduler at `address` (host:port); connects by itself. Made in a running loop; `close` ends it.
    `reason`: why this address is asked, for the message that it does not answer."""

    def __init__(self, address: str, reason: str = "") -> None:
        self.address = address
        self._reason = reason
        self._channel = dial(address)
        self._stub: Any = SchedulerStub(self._channel)  # type: ignore[no-untyped-call]

    async def execute(
        self,
        function: str,
        payload: bytes = b"",
        *,
        priority: int | None = None,
        collection: str = "",
        tenant: str = "",
        id: str = "",
        headers: Headers = (),
        attempt: int = 1,
        timeout: float | None = None,
    ) -> Ended:
        """Runs one workload and waits for its end, at most `timeout` seconds (None: without end); a call that is
        given up cancels it. Raises UnknownFunction, InvalidRequest, InvalidPayload, Overloaded, Unavailable."""
        request = pb.ExecuteRequest(
            function=function,
            payload=payload,
            priority=priority,
            collection=collection,
            tenant=tenant,
            id=id,
            headers=headers_to_wire(headers),
            attempt=attempt,
        )
        reply = await self._call(self._stub.Execute, request, timeout)
        return Ended(
            outcome=reply.outcome,
            reason=reply.reason,
            after=reply.after if reply.HasField("after") else None,
            result=reply.result if reply.HasField("result") else None,
        )

    async def adopt(
        self, scheduler: str, source: str, partition: str, epoch: int, version: int, timeout: float
    ) -> pb.Adoption:
        """Asks the scheduler process of this id which items of a row's owner still run there, and to take no more from
        that owner. The row of ownership is given as it was read."""
        row = pb.Adopt(source=source, partition=partition, epoch=epoch, version=version)
        reply: pb.Adoption = await self._call(self._stub.Adopt, pb.AdoptRequest(scheduler=scheduler, row=row), timeout)
        return reply

    async def inspect(self, timeout: float = 10.0) -> pb.InspectReply:
        """Asks for the present content of the scheduler."""
        reply: pb.InspectReply = await self._call(self._stub.Inspect, pb.InspectRequest(), timeout)
        return reply

    async def explain(self, id: str, timeout: float = 10.0) -> pb.ExplainReply:
        """Asks why a workload is not running, or where it runs."""
        reply: pb.ExplainReply = await self._call(self._stub.Explain, pb.ExplainRequest(id=id), timeout)
        return reply

    async def explain_kind(self, kind: Kind, source: str = "", timeout: float = 10.0) -> pb.ExplainReply:
        """Asks for everything that holds items of a kind, from this source if that is known."""
        request = pb.ExplainRequest(**kind._asdict(), source=source)
        reply: pb.ExplainReply = await self._call(self._stub.Explain, request, timeout)
        return reply

    async def record(self, salt: str = "") -> AsyncGenerator[bytes, None]:
        """Yields the lines of a recording as they come, until the recording is ended. With a `salt`, tenants are
        hashes."""
        stream = self._stub.Record(pb.RecordRequest(salt=salt))
        try:
            async for reply in stream:
                for line in reply.lines:
                    yield line
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None
        finally:
            stream.cancel()

    async def close(self) -> None:
        """Ends the channel."""
        await self._channel.close()

    async def _call(self, method: Any, request: Any, timeout: float | None) -> Any:
        try:
            return await method(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None


class SchedulerCalls(Protocol):
    """The calls that a scheduler's process answers. A TailraceError that they raise is raised again at the caller."""

    async def execute(self, request: pb.ExecuteRequest) -> pb.ExecuteReply: ...

    async def attach_tailer(self, connection: Stream) -> None: ...

    async def attach_worker(self, connection: Stream) -> None: ...

    async def adopt(self, request: pb.AdoptRequest) -> pb.Adoption: ...

    async def inspect(self) -> pb.InspectReply: ...

    async def explain(self, request: pb.ExplainRequest) -> pb.ExplainReply: ...

    def record(self, request: pb.RecordRequest) -> AsyncGenerator[pb.RecordReply, None]: ...


def serve_scheduler(calls: SchedulerCalls) -> Callable[[grpc.aio.Server], None]:
    """The serving half: registers `calls` with a server (see channel.serve)."""
    return lambda server: add_SchedulerServicer_to_server(_SchedulerServicer(calls), server)  # type: ignore[no-untyped-call]


def sessions(calls: SchedulerCalls) -> Mapping[StreamMethod, StreamHandler]:
    """The handlers of sessions, for `carriers.serve_streams`."""
    return {TAILER_SESSION: calls.attach_tailer, WORKER_SESSION: calls.attach_worker}


class _SchedulerServicer(SchedulerServicer):
    def __init__(self, calls: SchedulerCalls) -> None:
        self._calls = calls

    async def Execute(self, request: pb.ExecuteRequest, context: Any) -> Any:
        return await _answered(self._calls.execute(request), context)

    async def AttachTailer(self, request_iterator: Any, context: Any) -> None:
        await serve_stream(self._calls.attach_tailer, context)

    async def AttachWorker(self, request_iterator: Any, context: Any) -> None:
        await serve_stream(self._calls.attach_worker, context)

    async def Adopt(self, request: pb.AdoptRequest, context: Any) -> Any:
        return await _answered(self._calls.adopt(request), context)

    async def Inspect(self, request: pb.InspectRequest, context: Any) -> Any:
        return await _answered(self._calls.inspect(), context)

    async def Explain(self, request: pb.ExplainRequest, context: Any) -> Any:
        return await _answered(self._calls.explain(request), context)

    async def Record(self, request: pb.RecordRequest, context: Any) -> None:
        try:
            async with contextlib.aclosing(self._calls.record(request)) as replies:
                async for reply in replies:
                    async with asyncio.timeout(USUAL.stalled):  # a peer that reads nothing would keep its place
                        await context.write(reply)
        except TimeoutError:
            await context.abort(grpc.StatusCode.CANCELLED, f"the caller read nothing for {USUAL.stalled:g} s")
        except TailraceError as error:
            await abort(context, error)


async def _answered(call: Awaitable[Any], context: Any) -> Any:
    try:
        return await call
    except TailraceError as error:
        await abort(context, error)
