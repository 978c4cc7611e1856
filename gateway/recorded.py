"""Calls that are acts of operators, on their way to the desks that answer them."""

from __future__ import annotations

from typing import Any

from ..wire.asking import ASKER, Asker, asker_of
from ..wire.gateway import SchedulePort, WorkloadPort
from ..wire.stores import StoreCall
from ..wire.v1 import gateway_pb2 as pb
from .acts import ActDesk
from .guarded import check_operation


class RecordedWorkloads:
    """A WorkloadPort in front of another one."""

    def __init__(self, inner: WorkloadPort, acts: ActDesk) -> None:
        self._inner = inner
        self._acts = acts
        self.submit, self.submissions, self.find = inner.submit, inner.submissions, inner.find
        self.status, self.result, self.peek = inner.status, inner.result, inner.peek

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply:
        """An act."""
        return await self._acts.through("Cancel", {"request": request}, lambda: self._inner.cancel(request), _asker())

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply:
        """An act."""
        do = lambda: self._inner.reschedule(request)  # noqa: E731
        return await self._acts.through("Reschedule", {"request": request}, do, _asker())


class RecordedSchedules:
    """A SchedulePort likewise."""

    def __init__(self, inner: SchedulePort, acts: ActDesk) -> None:
        self._inner = inner
        self._acts = acts
        self.list = inner.list

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState:
        """An act."""
        return await self._acts.through("PutSchedule", {"request": request}, lambda: self._inner.put(request), _asker())

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState:
        """An act."""
        do = lambda: self._inner.change(request)  # noqa: E731
        return await self._acts.through("ChangeSchedule", {"request": request}, do, _asker())


class RecordedOperations:
    """Calls of operators' ports: refused to whoever lacks a right, else made, and kept if they are acts."""

    def __init__(self, acts: ActDesk) -> None:
        self._acts = acts

    async def through(self, call: StoreCall) -> Any:
        """Makes a call."""
        check_operation(call.store, call.method, call.arguments)
        name, arguments = f"{call.store}.{call.method}", call.arguments
        return await self._acts.through(name, arguments, lambda: call.answer(**arguments), asker_of(call.context))


def _asker() -> Asker:
    return ASKER.get() or Asker()
