"""The desk for schedules (put, list, pause, resume, run, remove), which also applies `schedules.yaml`."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.errors import Conflict, InvalidPayload, InvalidRequest, TailraceError, Unavailable
from ..model.schedule import MOST_SCHEDULES, Origin, Schedule, ScheduledRun, ScheduleRow, check_schedule
from ..model.token_calls import need_of
from ..stores.schedules import firing
from ..stores.schedules.schedules import Schedules
from ..stores.schedules.timetable import check_timetable
from ..wire.callers import RIGHTS, require, rights_of_caller
from ..wire.schedule_messages import schedule_from_wire, state_to_wire
from ..wire.v1 import gateway_pb2 as pb
from .config import GatewayConfig
from .known_functions import KnownFunctions
from .rules.lifting import noted, too_narrow

#: Most schedules in one answer; most coming, and most former runs of each.
MOST = MOST_SCHEDULES
MOST_RUNS = 100
#: Tries of a change, where other changes come between.
TRIES = 5
#: Seconds of the pause after the store failed at the start.
PAUSE = 0.5
CHANGES = ("pause", "resume", "run-now", "remove")
#: Rights, of which one is enough to know that a schedule exists.
SEEN_BY = ("read", "operate")

_LOG = logging.getLogger("tailrace.gateway")


class ScheduleDesk:
    """Answers calls about schedules (a SchedulePort); without a store of schedules it refuses."""

    def __init__(
        self,
        config: GatewayConfig,
        schedules: Schedules | None,
        functions: KnownFunctions,
        clock: Clock,
        duties: Duties,
    ) -> None:
        self._duties = duties
        self._config = config
        self._schedules = schedules
        self._functions = functions
        self._clock = clock
        self._applying: asyncio.Task[None] | None = None  # for a store that is away

    async def start(self, kept: Sequence[Schedule] | None, *, wait: bool = True) -> None:
        """Applies schedules.yaml; None: there is no such file, and nothing is changed. Waits for a store that is away;
        with `wait` False the file is applied later, when the store answers."""
        if kept is None:
            return
        await self.stop()  # an older file that still waits for the store would be applied after this
        if wait:
            await self._apply_when_there(kept)
        else:
            self._applying = self._duties.begin(self._apply_later(kept), "gateway: schedules.yaml")

    async def stop(self) -> None:
        """Ends the wait for the store. Harmless twice."""
        applying, self._applying = self._applying, None
        if applying is not None and not applying.done():
            await cancel(applying)

    async def _apply_later(self, kept: Sequence[Schedule]) -> None:
        try:
            await self._apply_when_there(kept)
        except TailraceError as error:
            _LOG.error("schedules.yaml is not applied: %s", error)

    async def _apply_when_there(self, kept: Sequence[Schedule]) -> None:
        told = False
        while True:
            try:
                await self._apply(kept)
                return
            except Unavailable as error:
                if not told:
                    _LOG.warning("schedules.yaml waits for the store: %s", error)
                    told = True
                await asyncio.sleep(PAUSE)

    async def put(self, request: pb.PutScheduleRequest) -> pb.ScheduleState:
        """Stores a schedule. Harmless when an equal one is there already."""
        store, now = self._store(), self._clock.wall()
        wanted = replace(schedule_from_wire(request.schedule), origin=Origin.HAND, created_at=now)
        self._check(wanted, now)
        for _ in range(TRIES):
            before = await store.get(wanted.name)
            if before is None:
                row = firing.begun(wanted, now)
                if not row.next_at:
                    raise InvalidRequest(f"{wanted.name} would never run: change cron, at, starts or until")
            else:
                if _hidden(before):
                    raise Conflict(f"the name {wanted.name!r} is taken by somebody else's schedule: choose another one")
                require([need_of("operate", before.schedule)])
                if before.schedule.same_as(wanted):
                    return await self._state(before)
                if before.schedule.origin is Origin.FILE:
                    raise InvalidRequest(f"{wanted.name} is kept by schedules.yaml: change it there, or take it out")
                if not request.replace:
                    raise Conflict(
                        f"there is a schedule {wanted.name!r} already ({before.schedule.when}): give --replace to "
                        "change it, or another name"
                    )
                row = firing.replaced(before, replace(wanted, created_at=before.schedule.created_at), now)
            kept = await store.put(row, 0 if before is None else before.version)
            if kept is not None:
                return await self._state(kept)
        raise _busy(wanted.name)

    async def list(self, request: pb.ListSchedulesRequest) -> pb.ListSchedulesReply:
        """The schedules that the caller may read, by name, or the one of this name."""
        rows = [await self._named(request.name, "read")] if request.name else await self._all(request.limit or MOST)
        coming, former = min(request.next, MOST_RUNS), min(request.last, MOST_RUNS)
        return pb.ListSchedulesReply(schedules=[await self._state(row, coming, former) for row in rows])

    async def change(self, request: pb.ChangeScheduleRequest) -> pb.ScheduleState:
        """Pauses, resumes, runs or removes a schedule. Harmless when it is so already."""
        if request.what not in CHANGES:
            raise InvalidRequest(f"what is {request.what!r:.50}: expected one of {', '.join(CHANGES)}")
        if request.what == "run-now":
            return await self._run(request.name)
        store = self._store()
        for _ in range(TRIES):
            before = await self._named(request.name, "operate")
            rights, lifts = rights_of_caller(), request.what != "pause"
            about = f"the pause of {request.name}"
            if before.paused and (fault := too_narrow(about, before.schedule.paused_with, rights)):
                if lifts:
                    raise InvalidRequest(fault)
                return await self._state(before)
            if request.what == "remove":
                if before.schedule.origin is Origin.FILE:
                    raise InvalidRequest(
                        f"{request.name} is kept by schedules.yaml: take it out there, or pause it until then"
                    )
                await store.remove(request.name)
                return await self._state(before, 0)
            if lifts:
                after = firing.resumed(before, self._clock.wall()) if before.paused else before
            else:
                after = firing.paused(before, noted(rights, need_of("operate", before.schedule)))
            if after == before:
                return await self._state(before)
            kept = await store.put(after, before.version)
            if kept is not None:
                return await self._state(kept)
        raise _busy(request.name)

    async def _run(self, name: str) -> pb.ScheduleState:
        store, row, now = self._store(), await self._named(name, "operate"), self._clock.wall()
        self._functions.check(row.schedule.function)
        run = await store.run(name, round(now, 3), now)
        if run is None:
            raise InvalidRequest(f"{name} has a run at this very moment already: try again in a moment")
        return state_to_wire(row, [], [run])

    async def _all(self, limit: int) -> Sequence[ScheduleRow]:
        """The first schedules that the caller may read, by name."""
        store, granted = self._store(), RIGHTS.get()
        if granted is None:
            return await store.list(min(limit, MOST))
        found = await store.list(MOST)
        return [row for row in found if granted.may(need_of("read", row.schedule))][:limit]

    async def _named(self, name: str, action: str) -> ScheduleRow:
        """The schedule of this name. Raises InvalidRequest for an unknown one, for one that the caller may not know of,
        and where the caller lacks the right to this action."""
        row = await self._store().get(name)
        if row is None or _hidden(row):
            raise InvalidRequest(f"no schedule is named {name!r:.200}: `tailrace schedule list` shows all")
        require([need_of(action, row.schedule)])
        return row

    async def _state(self, row: ScheduleRow, coming: int = 10, former: int = 0) -> pb.ScheduleState:
        try:
            following = firing.upcoming(row, self._clock.wall(), coming) if coming else []
        except InvalidRequest:  # its time zone is gone from this system
            following = []
        last: list[ScheduledRun] = await self._store().last(row.schedule.name, former) if former else []
        return state_to_wire(row, following, last)

    def _store(self) -> Schedules:
        if self._schedules is None:
            raise InvalidRequest("this gateway has no store of schedules")
        return self._schedules

    def _check(self, schedule: Schedule, now: float) -> None:
        for what in ("every", "at", "starts", "until", "jitter", "grace"):
            value = getattr(schedule, what)
            if not 0 <= value < math.inf:
                raise InvalidRequest(f"{schedule.name}: {what} is {value}: expected zero or more")
        check_schedule(schedule)
        check_timetable(schedule)
        if 0 < schedule.at <= now:
            raise InvalidRequest(f"{schedule.name}: at is in the past: submit the workload, or give a later time")
        self._functions.check_arguments(self._functions.check(schedule.function), schedule.payload)
        if len(schedule.payload) > self._config.max_payload:
            raise InvalidPayload(
                f"{schedule.name}: the payload has {len(schedule.payload)} bytes, at most {self._config.max_payload} "
                "are taken: store the data elsewhere, and give its place as an argument"
            )

    async def _apply(self, kept: Sequence[Schedule]) -> None:
        """Makes the stored schedules of the file equal to the file. Functions may be announced later, when workers
        start."""
        store, now = self._store(), self._clock.wall()
        there = {row.schedule.name: row for row in await store.list(MOST)}
        for schedule in kept:
            before = there.get(schedule.name)
            if before is None:
                row = firing.begun(replace(schedule, created_at=now), now)
            elif before.schedule.same_as(schedule) and before.schedule.origin is Origin.FILE:
                continue
            else:
                row = firing.replaced(before, replace(schedule, created_at=before.schedule.created_at), now)
            await store.put(row, 0 if before is None else before.version)
            if self._functions.get(schedule.function) is None:
                _LOG.warning(
                    "schedules.yaml: %s: no worker has announced the function %r; until one does its runs are held",
                    schedule.name,
                    schedule.function,
                )
        names = {schedule.name for schedule in kept}
        for name, row in there.items():
            if row.schedule.origin is Origin.FILE and name not in names:
                await store.remove(name)
                _LOG.info("the schedule %s is not in schedules.yaml any more: removed", name)


def _hidden(row: ScheduleRow) -> bool:
    """Whether the caller may know nothing of a schedule."""
    granted = RIGHTS.get()
    return granted is not None and not any(granted.may(need_of(each, row.schedule)) for each in SEEN_BY)


def _busy(name: str) -> Conflict:
    return Conflict(f"the schedule {name!r} is being changed by somebody else: try again")
