"""The gateway's service, protobuf for any language: the ports that it is made of, and the client half that commands,
workers and schedulers use, with what operators ask besides (operators.py). Users' programs use `sdk/client.py`, which
also tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import grpc

from ..foundation.identity import whoami
from ..model.act import reason
from ..model.backoff import CALL, Backoff
from ..model.errors import TailraceError
from ..model.function_spec import FunctionSpec
from ..model.limits import Snapshot
from ..model.schedule import Schedule
from ..model.status import WorkloadStatus
from .asking import ASKER, asker_of
from .bounds import USUAL
from .channel import abort, dial, error_of
from .convert import function_from_wire, function_to_wire
from .direct import SCHEME
from .gateway_messages import snapshot_from_wire, status_from_wire
from .operators import CALL_TIMEOUT, OperatorClient
from .schedule_messages import ScheduleView, schedule_to_wire, schedule_view
from .v1 import gateway_pb2 as pb
from .v1.gateway_pb2_grpc import GatewayStub, add_GatewayServicer_to_server

SERVICE = "tailrace.v1.Gateway"
#: Seconds within which a gateway takes a confirmation. Meanwhile no further change is taken from it.
CONFIRM_WITHIN = 2.0

_LOG = logging.getLogger("tailrace.wire.gateway")


class WorkloadPort(Protocol):
    """Workloads: taken in, found, looked at, moved, ended. Every method of these ports may raise a TailraceError, which
    the caller gets as the same error."""

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply: ...

    async def submissions(self, stream: Any) -> None: ...

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply: ...

    async def result(self, request: pb.ResultRequest) -> pb.ResultReply: ...

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply: ...

    async def find(self, request: pb.FindRequest) -> pb.FindReply: ...

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply: ...

    async def peek(self, request: pb.PeekRequest) -> pb.PeekReply: ...


class FunctionPort(Protocol):
    """The registered functions, and all that schedulers and workers watch: gates and quotas too."""

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply: ...

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply: ...

    def watch(self, request: pb.WatchRequest) -> AsyncIterator[pb.ControlSnapshot]: ...

    async def confirm(self, request: pb.ConfirmRequest) -> pb.ConfirmReply: ...


class SchedulePort(Protocol):
    """Schedules: kept, seen, changed."""

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState: ...

    async def list(self, request: pb.ListSchedulesRequest) -> pb.ListSchedulesReply: ...

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState: ...


class _GatewayServicer:
    """The generated service's names, answered by ports."""

    def __init__(self, workloads: WorkloadPort, functions: FunctionPort, schedules: SchedulePort) -> None:
        self._workloads = workloads
        self._functions = functions
        self.Submit = _unary(workloads.submit)
        self.Status = _unary(workloads.status)
        self.Result = _unary(workloads.result)
        self.Cancel = _asked(workloads.cancel)
        self.Find = _unary(workloads.find)
        self.Reschedule = _asked(workloads.reschedule)
        self.Peek = _unary(workloads.peek)
        self.RegisterFunctions = _unary(functions.register_functions)
        self.ListFunctions = _unary(functions.list_functions)
        self.Confirm = _unary(functions.confirm)
        self.PutSchedule = _asked(schedules.put)
        self.ListSchedules = _unary(schedules.list)
        self.ChangeSchedule = _asked(schedules.change)

    async def Submissions(self, request_iterator: Any, context: Any) -> None:
        # gRPC keeps what is not read, and ends nobody for it
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"submissions come in a stream by {SCHEME} only")

    async def Watch(self, request: pb.WatchRequest, context: Any) -> None:
        try:
            async for message in self._functions.watch(request):
                async with asyncio.timeout(USUAL.stalled):  # who reads nothing would keep a watcher's place
                    await context.write(message)
        except TimeoutError:
            await context.abort(grpc.StatusCode.CANCELLED, f"it read nothing for {USUAL.stalled:g} s")
        except TailraceError as error:
            await abort(context, error)


def _unary(answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    @functools.wraps(answer)
    async def method(request: Any, context: Any) -> Any:
        try:
            return await answer(request)
        except TailraceError as error:
            await abort(context, error)
        except Exception as error:
            _LOG.exception("the gateway failed at a request")
            await abort(context, TailraceError(f"the gateway failed: {type(error).__name__}: {error}; see its log"))

    return method


def _asked(answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """Likewise, of what is to be known who asks for it."""
    method = _unary(answer)

    @functools.wraps(answer)
    async def asked(request: Any, context: Any) -> Any:
        ASKER.set(asker_of(context))
        return await method(request, context)

    return asked


def register(
    workloads: WorkloadPort, functions: FunctionPort, schedules: SchedulePort
) -> Callable[[grpc.aio.Server], None]:
    """What `channel.serve` takes to serve these ports."""
    servicer = _GatewayServicer(workloads, functions, schedules)
    return lambda server: add_GatewayServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]


class GatewayClient(OperatorClient):
    """The client half, with what operators ask besides: one call, one answer or error, no second try."""

    def __init__(self, address: str, timeout: float | None = None, reason: str = "") -> None:
        super().__init__(address, timeout, reason)
        self._stub: Any = GatewayStub(self._channel)  # type: ignore[no-untyped-call]

    async def call(self, method: str, request: Any) -> Any:
        """One call of the generated service by its name. Raises what the gateway raised, or Unavailable."""
        try:
            return await getattr(self._stub, method)(request, timeout=self._timeout or CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None

    async def register_functions(self, worker: str, functions: Sequence[FunctionSpec]) -> None:
        """Announces what a worker can run."""
        messages = [function_to_wire(spec) for spec in functions]
        await self.call("RegisterFunctions", pb.RegisterFunctionsRequest(worker=worker, functions=messages))

    async def functions(self) -> list[FunctionSpec]:
        """The registered functions, by name."""
        reply = await self.call("ListFunctions", pb.ListFunctionsRequest())
        return [function_from_wire(function) for function in reply.functions]

    async def limits(self) -> Snapshot:
        """Gates, quotas and functions as they are now."""
        stream = self._stub.Watch(pb.WatchRequest(), timeout=self._timeout or CALL_TIMEOUT)
        try:
            async for message in stream:
                return snapshot_from_wire(message)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None
        finally:
            stream.cancel()
        raise TailraceError(f"{self.address} ended a watch without a snapshot")

    async def status(self, ids: Sequence[str]) -> list[WorkloadStatus | None]:
        """The status of each id; None for unknown ones."""
        reply = await self.call("Status", pb.StatusRequest(ids=ids))
        return [status_from_wire(message) for message in reply.statuses]

    async def put_schedule(self, schedule: Schedule, replace_it: bool = False, why: str = "") -> ScheduleView:
        """Keeps a schedule, in the place of another one of its name only if told; without `created_by`: user@host."""
        schedule = schedule if schedule.created_by else replace(schedule, created_by=whoami())
        request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace_it, why=reason(why))
        return schedule_view(await self.call("PutSchedule", request))

    async def schedules(self, name: str = "", limit: int = 1000, next: int = 1, last: int = 0) -> list[ScheduleView]:
        """All of them by name, or one, each with so many coming and former runs."""
        request = pb.ListSchedulesRequest(name=name, limit=limit, next=next, last=last)
        return [schedule_view(each) for each in (await self.call("ListSchedules", request)).schedules]

    async def change_schedule(self, name: str, what: str, why: str = "") -> ScheduleView:
        """Pauses, resumes, runs or removes one (then: as it was)."""
        request = pb.ChangeScheduleRequest(name=name, what=what, who=whoami(), why=reason(why))
        return schedule_view(await self.call("ChangeSchedule", request))


async def watch(
    address: str,
    on_snapshot: Callable[[Snapshot], None],
    *,
    scheduler: str = "",
    unreachable: Callable[[str], None] | None = None,
) -> None:
    """Calls `on_snapshot` with the control store's content, now and after each change, for ever.

    A gateway that dies or is cut off is called again with back-off; meanwhile nothing is said to `on_snapshot`, so that
    whoever watches keeps the last version. `unreachable` gets the reason, once per outage. `scheduler` is the name of
    one, which confirms what it was told. Ends by being cancelled.
    """
    backoff, said = Backoff(*CALL, random.random), False
    channel = dial(address)
    try:
        stub: Any = GatewayStub(channel)  # type: ignore[no-untyped-call]
        while True:
            reason = "it ended the watch"
            stream = stub.Watch(pb.WatchRequest(scheduler=scheduler))
            with contextlib.closing(_Cancelled(stream)):
                try:
                    async for message in stream:
                        on_snapshot(snapshot_from_wire(message))
                        backoff.reset()
                        said = False
                        if scheduler:
                            await _confirm(stub, scheduler, message.quotas_version)
                except grpc.aio.AioRpcError as error:
                    reason = str(error_of(error, address))
            if not said and unreachable is not None:
                unreachable(reason)
            said = True
            await asyncio.sleep(backoff.pause())
    finally:
        await channel.close()


async def _confirm(stub: Any, scheduler: str, version: int) -> None:
    """Says that these quotas are in force. Raises where nobody hears it: then the watch begins anew, and says it
    again."""
    try:
        await stub.Confirm(pb.ConfirmRequest(scheduler=scheduler, quotas_version=version), timeout=CONFIRM_WITHIN)
    except grpc.aio.AioRpcError as error:
        # Goes with 0.3.0: a gateway of 0.1 asks for nothing.
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise


class _Cancelled:
    """A call that is cancelled when it is closed."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def close(self) -> None:
        self._call.cancel()
