"""Calls of whoever has rights of its own, held against them where it is known what a call is about. All others are
somebody of this machine, or a part by its certificate, and pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..model.job import JobSpec
from ..model.rights import Need
from ..model.token_calls import CALLS, need_of
from ..wire.callers import CALLER, RIGHTS, require
from ..wire.gateway import WorkloadPort
from ..wire.v1 import gateway_pb2 as pb
from .rules.callback import is_function

#: Ports that look themselves at what a call is about (`guarded_jobs.py`, `guarded_letters.py`).
ASKED_THERE = frozenset({"job_audits", "job_pages", "jobs", "letters"})
#: Characters of what a caller says of itself.
WHO_LENGTH = 200


class GuardedWorkloads:
    """A WorkloadPort in front of another one."""

    def __init__(self, inner: WorkloadPort) -> None:
        self._inner = inner

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply:
        """For functions, collections and tenants that the caller may submit for; also those that are told of ends."""
        if RIGHTS.get() is not None:
            given = [*request.workloads, *request.alike.forms]
            told = {each.on_done: JobSpec("on_done", each.on_done) for each in given if is_function(each.on_done)}
            require(needs_of("submit", [*given, *told.values()]))
        return await self._inner.submit(request)

    async def submissions(self, stream: Any) -> None:
        """The same over one stream, which is for this machine only."""
        await self._inner.submissions(stream)

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply:
        """What the caller may not read is not known to it."""
        reply = await self._inner.status(request)
        granted = RIGHTS.get()
        if granted is None:
            return reply
        shown = [
            each if not each.known or granted.may(need_of("read", each)) else pb.WorkloadStatus(id=each.id)
            for each in reply.statuses
        ]
        return pb.StatusReply(statuses=shown)

    async def result(self, request: pb.ResultRequest) -> pb.ResultReply:
        """Of what the caller may read. Of an item of a stream only the result is kept, and not of which function it is:
        it is for who may read all."""
        await self._require_of("read", [request.id])
        reply = await self._inner.result(request)
        if reply.status.known:
            require([need_of("read", reply.status)])
        return reply

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply:
        """Of what the caller may operate."""
        await self._require_of("operate", request.ids)
        _sign(request)
        return await self._inner.cancel(request)

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply:
        """Of what the caller may operate."""
        await self._require_of("operate", [request.id])
        _sign(request)
        return await self._inner.reschedule(request)

    async def peek(self, request: pb.PeekRequest) -> pb.PeekReply:
        """Of what the caller may read."""
        await self._require_of("read", [request.id])
        return await self._inner.peek(request)

    async def find(self, request: pb.FindRequest) -> pb.FindReply:
        """Among what the caller may read: the function, and a tenant if it has one, are to be named."""
        require([need_of("read", request)])
        return await self._inner.find(request)

    async def _require_of(self, action: str, ids: Iterable[str]) -> None:
        if RIGHTS.get() is not None:
            known = await self._inner.status(pb.StatusRequest(ids=list(ids)))
            require(needs_of(action, [each for each in known.statuses if each.known]))


class GuardedFunctions:
    """A FunctionPort in front of another one."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.watch, self.confirm = inner.watch, inner.confirm

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply:
        """Those that the caller may run."""
        require(Need("run", each.name) for each in request.functions)
        reply: pb.RegisterFunctionsReply = await self._inner.register_functions(request)
        return reply

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply:
        """Those that the caller may read."""
        reply: pb.ListFunctionsReply = await self._inner.list_functions(request)
        granted = RIGHTS.get()
        if granted is None:
            return reply
        shown = [each for each in reply.functions if granted.may_some("read", each.name)]
        return pb.ListFunctionsReply(functions=shown)


class GuardedSchedules:
    """A SchedulePort in front of another one."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.list = inner.list

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState:
        """Of a function that the caller may operate, and submit for; so is the one whose place it takes."""
        require([need_of("operate", request.schedule), need_of("submit", request.schedule)])
        request.schedule.created_by = signed(request.schedule.created_by)
        state: pb.ScheduleState = await self._inner.put(request)
        return state

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState:
        """Of a function that the caller may operate, which the desk knows. Payloads are for who may read them."""
        _sign(request)
        state: pb.ScheduleState = await self._inner.change(request)
        granted = RIGHTS.get()
        if granted is not None and not granted.may(need_of("read", state.schedule)):
            state.schedule.ClearField("payload")
        return state


def signed(who: str) -> str:
    """Who says so: of a caller from beyond this machine, what it says and who it is."""
    caller = CALLER.get()
    return who if caller is None else f"{who[:WHO_LENGTH]} as {caller.role} {caller.name}".strip()


def _sign(request: Any) -> None:
    request.who = signed(request.who)


def check_operation(port: str, method: str, arguments: dict[str, Any]) -> None:
    """Raises InvalidRequest where an operator lacks the right to what a call is about. Its arguments are signed."""
    arguments |= {name: _signed(value) for name, value in arguments.items() if hasattr(value, "who")}
    if port == "jobs" and "who" in arguments:
        arguments["who"] = signed(arguments["who"])
    call = CALLS.get(f"Operators/Call {port}.{method}")
    if RIGHTS.get() is None or call is None or not call.scoped or port in ASKED_THERE:
        return
    subject = next((value for value in arguments.values() if hasattr(value, "function")), None)
    require([need_of(call.action, subject)])


def _signed(value: Any) -> Any:
    who = signed(value.who)
    return value._replace(who=who) if hasattr(value, "_replace") else replace(value, who=who)


def needs_of(action: str, subjects: Iterable[Any]) -> list[Need]:
    """What an action on all of these needs, each need once."""
    return list(dict.fromkeys(need_of(action, each) for each in subjects))
