"""Authorization: the rights of a caller are checked where the subject of its call is known. Callers without rights of
their own (users of this machine, parts with a certificate) pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..model.job import JobSpec
from ..model.rights import Need
from ..model.status import CREATED_BY
from ..model.token_calls import CALLS, need_of, need_to_limit
from ..wire.callers import CALLER, RIGHTS, require
from ..wire.gateway import WorkloadPort
from ..wire.v1 import gateway_pb2 as pb
from .rules.callback import is_function

#: Ports that check rights themselves (`guarded_jobs.py`, `guarded_letters.py`).
CHECKED_THERE = frozenset({"job_audits", "job_pages", "jobs", "letters"})


class GuardedWorkloads:
    """Checks the caller's rights to a call about workloads, then makes it (a WorkloadPort)."""

    def __init__(self, inner: WorkloadPort) -> None:
        self._inner = inner

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply:
        """Needs `submit` for each function, collection and tenant, and for functions in `on_done`."""
        if RIGHTS.get() is not None:
            given = [*request.workloads, *request.alike.forms]
            told = {each.on_done: JobSpec("on_done", each.on_done) for each in given if is_function(each.on_done)}
            require(needs_of("submit", [*given, *told.values()]))
        if (caller := CALLER.get()) is not None:
            _note_creator([*request.workloads, *request.alike.forms], caller.named)
        return await self._inner.submit(request)

    async def submissions(self, stream: Any) -> None:
        """Answers submissions over one stream; streams are for this machine only, so no right is needed."""
        await self._inner.submissions(stream)

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply:
        """Statuses of workloads that the caller may read; others are answered as unknown."""
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
        """Needs `read` for the workload. The result of a stream's item has no function with it, so it needs `read` for
        everything."""
        await self._require_of("read", [request.id])
        reply = await self._inner.result(request)
        if reply.status.known:
            require([need_of("read", reply.status)])
        return reply

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply:
        """Needs `operate` for each workload."""
        await self._require_of("operate", request.ids)
        _sign(request)
        return await self._inner.cancel(request)

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply:
        """Needs `operate` for the workload."""
        await self._require_of("operate", [request.id])
        _sign(request)
        return await self._inner.reschedule(request)

    async def peek(self, request: pb.PeekRequest) -> pb.PeekReply:
        """Needs `read` for the workload."""
        await self._require_of("read", [request.id])
        return await self._inner.peek(request)

    async def find(self, request: pb.FindRequest) -> pb.FindReply:
        """Needs `read` for the function and tenant that the search names; a caller with narrower rights must name
        them."""
        require([need_of("read", request)])
        return await self._inner.find(request)

    async def _require_of(self, action: str, ids: Iterable[str]) -> None:
        if RIGHTS.get() is not None:
            known = await self._inner.status(pb.StatusRequest(ids=list(ids)))
            require(needs_of(action, [each for each in known.statuses if each.known]))


class GuardedFunctions:
    """Checks the caller's rights to a call about functions, then makes it (a FunctionPort)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.watch, self.confirm = inner.watch, inner.confirm

    async def register_functions(self, request: pb.RegisterFunctionsRequest) -> pb.RegisterFunctionsReply:
        """Needs `run` for each function."""
        require(Need("run", each.name) for each in request.functions)
        reply: pb.RegisterFunctionsReply = await self._inner.register_functions(request)
        return reply

    async def list_functions(self, request: pb.ListFunctionsRequest) -> pb.ListFunctionsReply:
        """The functions of which the caller may read some workloads."""
        reply: pb.ListFunctionsReply = await self._inner.list_functions(request)
        granted = RIGHTS.get()
        if granted is None:
            return reply
        shown = [each for each in reply.functions if granted.may_some("read", each.name)]
        return pb.ListFunctionsReply(functions=shown)


class GuardedSchedules:
    """Checks the caller's rights to a call about schedules, then makes it (a SchedulePort)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.list = inner.list

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState:
        """Needs `operate` and `submit` for the schedule's function. The desk checks the schedule that is replaced."""
        require([need_of("operate", request.schedule), need_of("submit", request.schedule)])
        request.schedule.created_by = creator(request.schedule.created_by)
        state: pb.ScheduleState = await self._inner.put(request)
        return state

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState:
        """The desk checks that the caller may operate the schedule's function. The payload in the answer needs
        `read`."""
        _sign(request)
        state: pb.ScheduleState = await self._inner.change(request)
        granted = RIGHTS.get()
        if granted is not None and not granted.may(need_of("read", state.schedule)):
            state.schedule.ClearField("payload")
        return state


def signed(who: str) -> str:
    """The name of whoever acts: its own word; from beyond this machine with its role and its certified name."""
    caller = CALLER.get()
    return who if caller is None else caller.signs(who)


def creator(who: str) -> str:
    """The name of whoever makes something: from beyond this machine what its certificate or token says, whatever it
    says itself."""
    caller = CALLER.get()
    return who if caller is None else caller.named


def _note_creator(workloads: Iterable[pb.NewWorkload], who: str) -> None:
    """Replaces what workloads say of their creator, where they say anything."""
    for each in workloads:
        for header in each.headers:
            if header.name == CREATED_BY:
                header.value = who


def _sign(request: Any) -> None:
    request.who = signed(request.who)


def check_operation(port: str, method: str, arguments: dict[str, Any]) -> None:
    """Raises InvalidRequest where an operator lacks the right to a call's subject. Signs the caller's name in the
    arguments."""
    arguments |= {name: _signed(value) for name, value in arguments.items() if hasattr(value, "who")}
    if port == "jobs" and "who" in arguments:
        arguments["who"] = signed(arguments["who"])
    call = CALLS.get(f"Operators/Call {port}.{method}")
    if RIGHTS.get() is None or call is None or not call.scoped or port in CHECKED_THERE:
        return
    subject = next((value for value in arguments.values() if hasattr(value, "function")), None)
    require([need_to_limit(call.action, subject) if port == "limits" else need_of(call.action, subject)])


def _signed(value: Any) -> Any:
    who = signed(value.who)
    return value._replace(who=who) if hasattr(value, "_replace") else replace(value, who=who)


def needs_of(action: str, subjects: Iterable[Any]) -> list[Need]:
    """The needs of an action on all of these subjects, each once."""
    return list(dict.fromkeys(need_of(action, each) for each in subjects))
