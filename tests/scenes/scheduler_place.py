"""A scheduler's server over loopback, with tailers and workers that act as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes, grant_to_scheduler
from tailrace.model.outcome import Outcome
from tailrace.model.priority import Priority
from tailrace.model.workload import Ended, Extra, Flight, Kind, Outcomes, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.convert import (
    KindReader,
    KindWriter,
    function_to_wire,
    read_items,
    read_outcomes,
    write_items,
    write_outcomes,
)
from tailrace.wire.scheduler import SchedulerClient, SchedulerSessions
from tailrace.wire.session import Dialer
from tailrace.wire.v1 import scheduler_pb2 as pb

SIZES = LeaseSizes.of_heartbeat(1.0)


class Watched:
    """Lets a test wait until something is true, without sleeping: every frame that comes looks again."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.get_running_loop().create_task(tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until(self, true: Callable[[], Any], timeout: float = 20.0) -> None:
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(true)


class Streams:
    """Opens streams and can break the last one off, as a cut would."""

    def __init__(self, opens: Callable[[], Any]) -> None:
        self._opens = opens
        self._last: Any = None

    def open(self) -> Any:
        self._last = self._opens()
        return self._last

    def cut(self) -> None:
        self._last.cancel()


class FakeTailer(Watched):
    """A tailer that pushes as a test says and grants all requests, as long as `renews`."""

    def __init__(self, sessions: SchedulerSessions, name: str = "orders") -> None:
        super().__init__()
        self.kinds = KindWriter()
        self.pending: list[pb.Push] = []
        self.grant: pb.LeaseGrant | None = None
        self.cancel: list[int] = []
        self.draining = False
        self.open: dict[int, int] = {}
        self.ends: dict[int, Ended | None] = {}
        self.cells: dict[tuple[str, int], int] = {}
        self.closed: list[pb.ClosedCell] = []
        self.functions: dict[str, pb.Function] = {}
        self.request = 0
        self.renews = True
        self.losses = 0
        self.number = 0
        self.streams = Streams(sessions.attach_tailer)
        self.dialer = Dialer(
            self.streams.open,
            lambda hello: pb.TailerFrame(hello=_named(hello, name)),
            self,
            pb.TailerFrame,
            silence=30.0,
        )

    def push(self, *kinds: Kind, ids: list[str] | None = None, extras: dict[int, Extra] | None = None) -> list[int]:
        self.number += 1
        push = pb.Push(flight=self.number, fence=self.number, lease_request=self.request, lease=SIZES.scheduler)
        ids = ids or [f"{self.number}-{index}" for index in range(len(kinds))]
        columns = (list(kinds), ids, [name.encode() for name in ids], [1] * len(ids))
        write_items(push.items, self.kinds, columns, extras or {})
        self.pending.append(push)
        self.open[self.number] = len(kinds)
        self.dialer.notify()
        return [ref(self.number, index) for index in range(len(kinds))]

    def opened(self, resumed: bool) -> None:
        self.changed()

    def broken(self) -> None:
        self.changed()

    def lost(self) -> None:
        self.losses += 1
        self.open.clear()
        self.request = 0
        self.kinds = KindWriter()
        self.changed()

    def compose(self) -> pb.TailerFrame | None:
        if not (self.pending or self.grant or self.cancel or self.draining):
            return None
        frame = pb.TailerFrame(pushes=self.pending, grant=self.grant, cancel=self.cancel, draining=self.draining)
        self.pending, self.grant, self.cancel, self.draining = [], None, [], False
        return frame

    def accept(self, frame: pb.TailerReply) -> None:
        for cell in frame.credit.cells:
            self.cells[cell.function, cell.priority] = cell.limit
        if frame.credit.closed_changed:
            self.closed = list(frame.credit.closed)
        self.functions.update({function.name: function for function in frame.credit.functions})
        outcomes = read_outcomes(frame.outcomes)
        for each in [*outcomes.succeeded, *outcomes.ended]:
            assert each not in self.ends, "an item ended twice"
            self.ends[each] = outcomes.ended.get(each)
            self.open[each >> 10] -= 1
        if frame.HasField("lease_request"):
            self.request = frame.lease_request.number
            if self.renews:
                lease = grant_to_scheduler(SIZES, SIZES.source)
                flights = [flight for flight, left in self.open.items() if left]
                self.grant = pb.LeaseGrant(request=self.request, lease=lease, flights=flights)
                self.dialer.notify()
        self.changed()

    async def ended(self, refs: list[int]) -> list[Ended | None]:
        await self.until(lambda: all(each in self.ends for each in refs))
        return [self.ends[each] for each in refs]


class FakeWorker(Watched):
    """Takes assignments; ends them as `answer` says (None: keeps them until a test ends them)."""

    def __init__(
        self,
        sessions: SchedulerSessions,
        *functions: str,
        limit: int = 1000,
        answer: Callable[[Flight, int], Ended | None] | None = None,
        hold: bool = False,
        version: str = "",
    ) -> None:
        super().__init__()
        self.versions = dict.fromkeys(functions, version) if version else {}
        self.specs = [FunctionSpec(name, priority=Priority.USER_VISIBLE) for name in functions]
        self.pool = pb.Pool(name="default", functions=functions, slots=limit, limit=limit)
        self.answer = answer
        self.hold = hold
        self.kinds = KindReader()
        self.outcomes = Outcomes()
        self.flights: dict[int, Flight] = {}
        self.groups: dict[int, int] = {}
        self.leases: list[float] = []
        self.fences: list[int] = []
        self.extras: list[Extra] = []
        self.grants: list[pb.LeaseGrants] = []
        self.cancelled: list[int] = []
        self.open: dict[int, str] = {}
        self.requests = 0
        self.asked = False
        self.draining = False
        self.waits: dict[int, bool] = {}
        self.resumes: list[bool] = []
        self.losses = 0
        self.streams = Streams(sessions.attach_worker)
        self.dialer = Dialer(
            self.streams.open,
            self._hello,
            self,
            pb.WorkerFrame,
            silence=30.0,
        )

    def _hello(self, hello: pb.Hello) -> pb.WorkerFrame:
        _named(hello, "worker")
        hello.functions.extend([function_to_wire(spec) for spec in self.specs])
        hello.pools.append(self.pool)
        hello.versions.update(self.versions)
        return pb.WorkerFrame(hello=hello)

    def opened(self, resumed: bool) -> None:
        self.resumes.append(resumed)
        self.ask()

    def ask(self) -> None:
        self.asked = True
        self.dialer.notify()
        self.changed()

    def broken(self) -> None:
        self.changed()

    def lost(self) -> None:
        self.losses += 1
        self.open.clear()
        self.kinds = KindReader()
        self.requests = 0
        self.changed()

    def end(self, each: int, ended: Ended | None = None) -> None:
        if self.open.pop(each, None) is not None:
            if ended is None:
                self.outcomes.succeeded.append(each)
            else:
                self.outcomes.ended[each] = ended
        self.dialer.notify()

    def wait(self, each: int, waits: bool = True) -> None:
        """Has an item wait for other work, or go on."""
        self.waits[each] = waits
        self.dialer.notify()

    def compose(self) -> pb.WorkerFrame | None:
        if not (self.outcomes or self.asked or self.draining or self.waits):
            return None
        frame = pb.WorkerFrame(draining=self.draining)
        self.draining = False
        frame.waits.extend(each for each, waits in self.waits.items() if waits)
        frame.goes_on.extend(each for each, waits in self.waits.items() if not waits)
        self.waits = {}
        if self.outcomes:
            write_outcomes(frame.outcomes, self.outcomes)
            self.outcomes = Outcomes()
        if self.asked:
            self.asked = False
            self.requests += 1
            frame.lease_request.number = self.requests
        return frame

    def accept(self, frame: pb.WorkerReply) -> None:
        for assign in frame.assigns:
            flight = read_items(assign.items, self.kinds, assign.flight, 0)
            assert len(assign.fence) == len(flight)
            self.flights[assign.flight] = flight
            self.groups[assign.flight] = assign.group
            self.leases.append(assign.lease)
            self.fences += assign.fence
            self.extras += flight.extras.values()
            for index, id in enumerate(flight.ids):
                each = ref(assign.flight, index)
                self.open[each] = id
                if not self.hold:
                    self.end(each, self.answer(flight, index) if self.answer else None)
        if frame.HasField("grants"):
            self.grants.append(frame.grants)
        for each in frame.cancel:
            self.cancelled.append(each)
            self.end(each, Ended(Outcome.CANCELLED, "told to"))
        self.changed()


def _named(hello: pb.Hello, name: str) -> pb.Hello:
    hello.name = name
    return hello


class Place:
    """A scheduler, and the parts that a test attaches to it; everything is closed at the end."""

    def __init__(self) -> None:
        self.client: SchedulerClient
        self.sessions: SchedulerSessions
        self.server: SchedulerServer
        self.attached: list[FakeTailer | FakeWorker] = []

    async def start(self, watch: Any = None, **config: Any) -> None:
        self.server = SchedulerServer(SchedulerConfig(listen="127.0.0.1:0", **config), SIZES, watch)
        await self.server.start()
        self.client = SchedulerClient(self.server.address)
        self.sessions = SchedulerSessions(self.server.address)

    async def tailer(self, *functions: str, name: str = "orders") -> FakeTailer:
        """A tailer that has credit for each of these functions."""
        tailer = FakeTailer(self.sessions, name)
        self.attached.append(tailer)
        tailer.dialer.start()
        await tailer.until(lambda: tailer.request and all((name, 0) in tailer.cells for name in functions))
        return tailer

    async def worker(self, *functions: str, **options: Any) -> FakeWorker:
        worker = FakeWorker(self.sessions, *functions, **options)
        self.attached.append(worker)
        worker.dialer.start()
        await worker.until(lambda: worker.grants)
        return worker

    async def close(self) -> None:
        for each in self.attached:
            await each.dialer.close()
        await self.sessions.close()
        await self.client.close()
        await self.server.stop()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A scheduler for a test."""
    made = Place()
    await made.start()
    yield made
    await made.close()


SEND = Kind("send", 1, "reset", "ann")
