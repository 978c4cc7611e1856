"""The gateway's service: the server half that parts implement, the client half that operators' commands, workers and
schedulers use. (Users' programs use `sdk/client.py`, which also tries again.)
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self

import grpc

from ..identity import whoami
from ..model.audit import Audit
from ..model.backoff import Backoff
from ..model.dead_letter import EVERY, DeadLetter, LetterFilter
from ..model.drop import DropRow
from ..model.errors import InvalidRequest, TailraceError
from ..model.function_spec import FunctionSpec
from ..model.limits import Gate, Quota, Snapshot
from ..model.overview import Overview
from ..model.replay import ReplayOrder
from ..model.schedule import Schedule
from ..model.seek import Move, Seek
from ..model.status import WorkloadStatus
from .audit_messages import audit_from_wire
from .bounds import USUAL
from .channel import abort, dial, error_of
from .convert import function_from_wire, function_to_wire
from .direct import SCHEME
from .drop_messages import drop_from_wire
from .gateway_messages import (
    gate_to_wire,
    overview_from_wire,
    quota_to_wire,
    snapshot_from_wire,
    status_from_wire,
)
from .letter_messages import filter_to_wire, letter_from_wire
from .replay_messages import ReplayView, order_to_wire, view_from_wire
from .schedule_messages import ScheduleView, schedule_to_wire, schedule_view
from .seek_messages import moves_from_wire, seek_to_wire
from .v1 import gateway_pb2 as pb
from .v1.gateway_pb2_grpc import GatewayStub, add_GatewayServicer_to_server

SERVICE = "tailrace.v1.Gateway"
#: Seconds for a call of the client half, and between attempts to watch again: doubling from the first to the last.
CALL_TIMEOUT = 10.0
AUDIT_TIMEOUT = 120.0
#: Seconds for moving a checkpoint: the lease of a former owner, and a search by time.
SEEK_TIMEOUT = 120.0
FIRST_PAUSE = 0.05
LAST_PAUSE = 1.0

_LOG = logging.getLogger("tailrace.wire.gateway")
_UNARY = {
    "Submit": "submit",
    "Status": "status",
    "Result": "result",
    "Cancel": "cancel",
    "Find": "find",
    "RegisterFunctions": "register_functions",
    "ListFunctions": "list_functions",
    "SetGate": "set_gate",
    "SetQuota": "set_quota",
    "ListDead": "list_dead",
    "CountDead": "count_dead",
    "RedriveDead": "redrive_dead",
    "PurgeDead": "purge_dead",
    "ListDrops": "list_drops",
    "Overview": "overview",
    "TellFailure": "tell_failure",
    "Audit": "audit",
    "PauseTailer": "pause_tailer",
    "SeekTailer": "seek_tailer",
    "StartReplay": "start_replay",
    "ListReplays": "list_replays",
    "ChangeReplay": "change_replay",
    "PutSchedule": "put_schedule",
    "ListSchedules": "list_schedules",
    "ChangeSchedule": "change_schedule",
}


class Gateway(Protocol):
    """What a gateway answers. Every method may raise a TailraceError, which the caller gets as the same error."""

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply: ...

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply: ...

    async def result(self, request: pb.ResultRequest) -> pb.ResultReply: ...

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply: ...

    async def find(self, request: pb.FindRequest) -> pb.FindReply: ...

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply: ...

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply: ...

    async def set_gate(self, request: pb.SetGateRequest) -> pb.ControlReply: ...

    async def set_quota(self, request: pb.SetQuotaRequest) -> pb.ControlReply: ...

    async def list_dead(self, request: pb.ListDeadRequest) -> pb.ListDeadReply: ...

    async def count_dead(self, request: pb.CountDeadRequest) -> pb.CountDeadReply: ...

    async def redrive_dead(self, request: pb.RedriveDeadRequest) -> pb.RedriveDeadReply: ...

    async def purge_dead(self, request: pb.PurgeDeadRequest) -> pb.PurgeDeadReply: ...

    async def audit(self, request: pb.AuditRequest) -> pb.AuditReply: ...

    async def pause_tailer(self, request: pb.PauseTailerRequest) -> pb.PauseTailerReply: ...

    async def seek_tailer(self, request: pb.SeekTailerRequest) -> pb.SeekTailerReply: ...

    async def start_replay(self, request: pb.StartReplayRequest) -> pb.Replay: ...

    async def list_replays(self, request: pb.ListReplaysRequest) -> pb.ListReplaysReply: ...

    async def change_replay(self, request: pb.ChangeReplayRequest) -> pb.Replay: ...

    async def put_schedule(self, request: pb.PutScheduleRequest) -> pb.ScheduleState: ...

    async def list_schedules(self, request: pb.ListSchedulesRequest) -> pb.ListSchedulesReply: ...

    async def change_schedule(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState: ...

    async def list_drops(self, request: pb.ListDropsRequest) -> pb.ListDropsReply: ...

    async def overview(self, request: pb.OverviewRequest) -> pb.OverviewReply: ...

    async def tell_failure(self, request: pb.TellFailureRequest) -> pb.TellFailureReply: ...

    def watch(self, request: pb.WatchRequest) -> AsyncIterator[pb.ControlSnapshot]: ...

    async def submissions(self, stream: Any) -> None: ...


class _Servicer:
    """The generated service's names, answered by a Gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        for method, name in _UNARY.items():
            setattr(self, method, _unary(getattr(gateway, name)))

    async def Submissions(self, request_iterator: Any, context: Any) -> None:
        # gRPC keeps what is not read, and ends nobody for it
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"submissions come in a stream by {SCHEME} only")

    async def Watch(self, request: pb.WatchRequest, context: Any) -> None:
        try:
            async for message in self._gateway.watch(request):
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


def register(gateway: Gateway) -> Callable[[grpc.aio.Server], None]:
    """What `channel.serve` takes to serve this gateway."""
    return lambda server: add_GatewayServicer_to_server(_Servicer(gateway), server)  # type: ignore[no-untyped-call]


class GatewayClient:
    """The client half: one call, one answer or error, no second try. An async context manager. `reason`: why this
    address is asked, for whoever gets no answer."""

    def __init__(self, address: str, timeout: float = CALL_TIMEOUT, reason: str = "") -> None:
        self.address = address
        self._reason = reason
        self._timeout = timeout
        self._channel = dial(address)
        self._stub: Any = GatewayStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()

    async def call(self, method: str, request: Any, timeout: float | None = None) -> Any:
        """One call of the generated service by its name. Raises what the gateway raised, or Unavailable."""
        try:
            return await getattr(self._stub, method)(request, timeout=timeout or self._timeout)
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

    async def set_gate(self, gate: Gate) -> int:
        """Sets a gate; action `resume` removes it. Without `who` it is user@host. Returns the store's version."""
        gate = gate if gate.who else replace(gate, who=whoami())
        return int((await self.call("SetGate", pb.SetGateRequest(gate=gate_to_wire(gate)))).version)

    async def set_quota(self, quota: Quota) -> int:
        """Sets a function's limits; all zero removes them. Returns the store's version."""
        return int((await self.call("SetQuota", pb.SetQuotaRequest(quota=quota_to_wire(quota)))).version)

    async def limits(self) -> Snapshot:
        """Gates, quotas and functions as they are now."""
        stream = self._stub.Watch(pb.WatchRequest(), timeout=self._timeout)
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

    async def dead_letters(
        self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0
    ) -> tuple[list[DeadLetter], int]:
        """Dead letters without payloads, oldest first, from after number `after` on; and how many there are in all."""
        reply = await self.call("ListDead", pb.ListDeadRequest(filter=filter_to_wire(which), limit=limit, after=after))
        return [letter_from_wire(letter) for letter in reply.letters], int(reply.total)

    async def dead_letter(self, id: str) -> DeadLetter:
        """One dead letter with its payload. Raises InvalidRequest when there is none of this id."""
        reply = await self.call("ListDead", pb.ListDeadRequest(id=id))
        if not reply.letters:
            raise InvalidRequest(f"there is no dead letter {id!r}; `tailrace dead list` shows those there are")
        return letter_from_wire(reply.letters[0])

    async def count_dead(self, which: LetterFilter = EVERY) -> pb.CountDeadReply:
        """How many there are of each function, and how many a redrive would refuse."""
        reply: pb.CountDeadReply = await self.call("CountDead", pb.CountDeadRequest(filter=filter_to_wire(which)))
        return reply

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, timeout: float | None = None
    ) -> pb.RedriveDeadReply:
        """Makes up to `limit` letters workloads again: go on after the reply's `next` until it is 0. Each letter moves
        once, however often this is repeated."""
        request = pb.RedriveDeadRequest(filter=filter_to_wire(which), limit=limit, after=after)
        reply: pb.RedriveDeadReply = await self.call("RedriveDead", request, timeout)
        return reply

    async def purge(self, which: LetterFilter, limit: int = 1000, timeout: float | None = None) -> dict[str, int]:
        """Forgets up to `limit` letters; how many of each function. Empty: there were no more."""
        request = pb.PurgeDeadRequest(filter=filter_to_wire(which), limit=limit)
        reply = await self.call("PurgeDead", request, timeout)
        return {each.name: int(each.count) for each in reply.purged}

    async def audit(
        self, tailer: str, partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]:
        """What became of everything that a tailer's source had, by partition; or of a range of positions."""
        request = pb.AuditRequest(tailer=tailer, partition=partition)
        if span is not None:
            request.first, request.end = span
        return [audit_from_wire(each) for each in (await self.call("Audit", request, AUDIT_TIMEOUT)).audits]

    async def pause_tailer(self, tailer: str, paused: bool) -> None:
        """Pauses or resumes a tailer of the gateway's process."""
        await self.call("PauseTailer", pb.PauseTailerRequest(tailer=tailer, paused=paused))

    async def seek_tailer(self, seek: Seek) -> list[Move]:
        """Moves the checkpoint of a paused or stopped tailer; without `who` it is user@host."""
        seek = seek if seek.who else seek._replace(who=whoami())
        return moves_from_wire(await self.call("SeekTailer", seek_to_wire(seek), SEEK_TIMEOUT))

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Runs a part of a stream's past again, or says what that would be; without `who` it is user@host."""
        order = order if order.who else order._replace(who=whoami())
        return view_from_wire(await self.call("StartReplay", order_to_wire(order), SEEK_TIMEOUT))

    async def replays(self, number: int = 0, limit: int = 100) -> list[ReplayView]:
        """The newest replays first, or the one of a number."""
        request = pb.ListReplaysRequest(number=number, limit=limit)
        return [view_from_wire(each) for each in (await self.call("ListReplays", request)).replays]

    async def change_replay(self, number: int, what: str) -> ReplayView:
        """Pauses, resumes or cancels one."""
        return view_from_wire(await self.call("ChangeReplay", pb.ChangeReplayRequest(number=number, what=what)))

    async def put_schedule(self, schedule: Schedule, replace_it: bool = False) -> ScheduleView:
        """Keeps a schedule, in the place of another one of its name only if told; without `created_by`: user@host."""
        schedule = schedule if schedule.created_by else replace(schedule, created_by=whoami())
        request = pb.PutScheduleRequest(schedule=schedule_to_wire(schedule), replace=replace_it)
        return schedule_view(await self.call("PutSchedule", request))

    async def schedules(self, name: str = "", limit: int = 1000, next: int = 1, last: int = 0) -> list[ScheduleView]:
        """All of them by name, or one, each with so many coming and former runs."""
        request = pb.ListSchedulesRequest(name=name, limit=limit, next=next, last=last)
        return [schedule_view(each) for each in (await self.call("ListSchedules", request)).schedules]

    async def change_schedule(self, name: str, what: str) -> ScheduleView:
        """Pauses, resumes, runs or removes one (then: as it was)."""
        return schedule_view(await self.call("ChangeSchedule", pb.ChangeScheduleRequest(name=name, what=what)))

    async def drops(self, tailer: str = "", limit: int = 100, skip: int = 0) -> list[DropRow]:
        """What of a tailer's stream (or of all) was passed without being run, by tailer, partition and position."""
        reply = await self.call("ListDrops", pb.ListDropsRequest(tailer=tailer, limit=limit, skip=skip))
        return [drop_from_wire(row) for row in reply.rows]

    async def overview(self) -> Overview:
        """What rests where."""
        return overview_from_wire(await self.call("Overview", pb.OverviewRequest()))


async def watch(
    address: str,
    on_snapshot: Callable[[Snapshot], None],
    *,
    unreachable: Callable[[str], None] | None = None,
) -> None:
    """Calls `on_snapshot` with the control store's content, now and after each change, for ever.

    A gateway that dies or is cut off is called again with back-off; meanwhile nothing is said to `on_snapshot`, so that
    whoever watches keeps the last version. `unreachable` gets the reason, once per outage. Ends by being cancelled.
    """
    backoff, said = Backoff(FIRST_PAUSE, LAST_PAUSE, random.random), False
    channel = dial(address)
    try:
        stub: Any = GatewayStub(channel)  # type: ignore[no-untyped-call]
        while True:
            reason = "it ended the watch"
            stream = stub.Watch(pb.WatchRequest())
            with contextlib.closing(_Cancelled(stream)):
                try:
                    async for message in stream:
                        on_snapshot(snapshot_from_wire(message))
                        backoff.reset()
                        said = False
                except grpc.aio.AioRpcError as error:
                    reason = str(error_of(error, address))
            if not said and unreachable is not None:
                unreachable(reason)
            said = True
            await asyncio.sleep(backoff.pause())
    finally:
        await channel.close()


class _Cancelled:
    """A call that is cancelled when it is closed."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def close(self) -> None:
        self._call.cancel()
