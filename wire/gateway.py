"""The gateway's service, protobuf for any language: the ports (interfaces) that it is made of, and the client half that
commands, workers and schedulers use, which has the calls of operators too (operators.py). Users' programs use
`sdk/client.py`, which also tries again.
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
from .asker import ASKER, asker_of
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
#: Seconds within which a gateway must accept a confirmation. Meanwhile no further change is read from it.
CONFIRM_WITHIN = 2.0

_LOG = logging.getLogger("tailrace.wire.gateway")


class WorkloadPort(Protocol):
    """Calls about workloads: submit, find, look at, move, end. Every method of these ports may raise a TailraceError,
    which is raised again at the caller."""

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply: ...

    async def submissions(self, stream: Any) -> None: ...

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply: ...

    async def result(self, request: pb.ResultRequest) -> pb.ResultReply: ...

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply: ...

    async def find(self, request: pb.FindRequest) -> pb.FindReply: ...

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply: ...

    async def peek(self, request: pb.PeekRequest) -> pb.PeekReply: ...


class FunctionPort(Protocol):
    """Calls about functions, and the watch by which schedulers and workers follow functions, gates and quotas."""

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply: ...

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply: ...

    def watch(self, request: pb.WatchRequest) -> AsyncIterator[pb.ControlSnapshot]: ...

    async def confirm(self, request: pb.ConfirmRequest) -> pb.ConfirmReply: ...


class SchedulePort(Protocol):
    """Calls about schedules: put, list, change."""

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState: ...

    async def list(self, request: pb.ListSchedulesRequest) -> pb.ListSchedulesReply: ...

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState: ...


class _GatewayServicer:
    """The methods of the generated service, answered by ports."""

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
                async with asyncio.timeout(USUAL.stalled):  # a peer that reads nothing would keep a watcher's place
                    await context.write(message)
        except TimeoutError:
            await context.abort(grpc.StatusCode.CANCELLED, f"the caller read nothing for {USUAL.stalled:g} s")
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
    """Makes a method like `_unary`, which also sets ASKER to the caller, for the record of acts."""
    method = _unary(answer)

    @functools.wraps(answer)
    async def asked(request: Any, context: Any) -> Any:
        ASKER.set(asker_of(context))
        return await method(request, context)

    return asked


def register(
    workloads: WorkloadPort, functions: FunctionPort, schedules: SchedulePort
) -> Callable[[grpc.aio.Server], None]:
    """Makes the function by which `channel.serve` registers these ports."""
    servicer = _GatewayServicer(workloads, functions, schedules)
    return lambda server: add_GatewayServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]


class GatewayClient(OperatorClient):
    """The client half, with the calls of operators too: one call, one answer or error, no second try."""

    def __init__(self, address: str, timeout: float | None = None, reason: str = "") -> None:
        super().__init__(address, timeout, reason)
        self._stub: Any = GatewayStub(self._channel)  # type: ignore[no-untyped-call]

    async def call(self, method: str, request: Any) -> Any:
        """Makes one call of the generated service, by its name. Raises the gateway's own error, or Unavailable."""
        try:
            return await getattr(self._stub, method)(request, timeout=self._timeout or CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address, self._reason) from None

    async def register_functions(self, worker: str, functions: Sequence[FunctionSpec]) -> None:
        """Registers the functions that a worker can run."""
        messages = [function_to_wire(spec) for spec in functions]
        await self.call("RegisterFunctions", pb.RegisterFunctionsRequest(worker=worker, functions=messages))

    async def functions(self) -> list[FunctionSpec]:
        """The registered functions, by name."""
        reply = await self.call("ListFunctions", pb.ListFunctionsRequest())
        return [function_from_wire(function) for function in reply.functions]

    async def limits(self) -> Snapshot:
        """The present gates, quotas and functions."""
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
        """Stores a schedule; `replace_it`: also over another one of its name. An empty `created_by` becomes
        user@host."""
        schedule = schedule if schedule.created_by else replace(schedule, created_by=whoami())
        request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace_it, why=reason(why))
        return schedule_view(await self.call("PutSchedule", request))

    async def schedules(self, name: str = "", limit: int = 1000, next: int = 1, last: int = 0) -> list[ScheduleView]:
        """All schedules by name, or the one of this name, each with `next` coming and `last` former runs."""
        request = pb.ListSchedulesRequest(name=name, limit=limit, next=next, last=last)
        return [schedule_view(each) for each in (await self.call("ListSchedules", request)).schedules]

    async def change_schedule(self, name: str, what: str, why: str = "") -> ScheduleView:
        """Pauses, resumes, runs or removes a schedule (`what`); returns it, a removed one as it was."""
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

    A gateway that dies or is cut off is called again with back-off; meanwhile `on_snapshot` is not called, so that the
    watcher keeps the last version. `unreachable` gets the reason, once per outage. `scheduler`: the name of a scheduler
    that watches, which confirms each snapshot. Ends by being cancelled.
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
    """Confirms that this version of the quotas is in force. Raises AioRpcError where nobody hears it: the watch then
    begins anew, and confirms again."""
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
