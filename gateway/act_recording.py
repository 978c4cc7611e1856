"""Recording of calls that are acts of operators (audit trail), on their way to the desks that answer them."""

from __future__ import annotations

from typing import Any

from ..wire.asker import ASKER, Asker, asker_of
from ..wire.gateway import SchedulePort, WorkloadPort
from ..wire.stores import StoreCall
from ..wire.v1 import gateway_pb2 as pb
from .acts import ActDesk
from .authorization import check_operation


class RecordedWorkloads:
    """Records acts among calls about workloads, then makes them (a WorkloadPort)."""

    def __init__(self, inner: WorkloadPort, acts: ActDesk) -> None:
        self._inner = inner
        self._acts = acts
        self.submit, self.submissions, self.find = inner.submit, inner.submissions, inner.find
        self.status, self.result, self.peek = inner.status, inner.result, inner.peek

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply:
        """Recorded as an act."""
        return await self._acts.through("Cancel", {"request": request}, lambda: self._inner.cancel(request), _asker())

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply:
        """Recorded as an act."""
        do = lambda: self._inner.reschedule(request)  # noqa: E731
        return await self._acts.through("Reschedule", {"request": request}, do, _asker())


class RecordedSchedules:
    """Records acts among calls about schedules, then makes them (a SchedulePort)."""

    def __init__(self, inner: SchedulePort, acts: ActDesk) -> None:
        self._inner = inner
        self._acts = acts
        self.list = inner.list

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState:
        """Recorded as an act."""
        return await self._acts.through("PutSchedule", {"request": request}, lambda: self._inner.put(request), _asker())

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState:
        """Recorded as an act."""
        do = lambda: self._inner.change(request)  # noqa: E731
        return await self._acts.through("ChangeSchedule", {"request": request}, do, _asker())


class RecordedOperations:
    """Checks the caller's rights to calls of operators' ports, makes them, and records those that are acts."""

    def __init__(self, acts: ActDesk) -> None:
        self._acts = acts

    async def through(self, call: StoreCall) -> Any:
        """Makes a call. Raises InvalidRequest where the caller lacks a right."""
        check_operation(call.store, call.method, call.arguments)
        name, arguments = f"{call.store}.{call.method}", call.arguments
        return await self._acts.through(name, arguments, lambda: call.answer(**arguments), asker_of(call.context))


def _asker() -> Asker:
    return ASKER.get() or Asker()
