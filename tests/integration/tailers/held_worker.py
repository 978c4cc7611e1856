"""A real scheduler, a worker that runs what it gets until a test ends it, and tailers below them that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Outcomes, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.endpoints import TailerEnd
from tailrace.scheduler.server import SchedulerServer
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer
from tailrace.wire.convert import KindReader, function_to_wire, read_items, write_outcomes
from tailrace.wire.scheduler import SchedulerSessions
from tailrace.wire.session import Dialer
from tailrace.wire.v1 import scheduler_pb2 as pb

#: Leases far longer than any test waits: 36 s for a source.
LONG = LeaseSizes.of_heartbeat(5.0)
SHORT = LeaseSizes.of_heartbeat(0.2)


class HeldWorker:
    """A worker that runs everything it is given until a test ends it."""

    def __init__(self, sessions: SchedulerSessions, sizes: LeaseSizes) -> None:
        self.open: dict[str, int] = {}
        self.started: list[str] = []
        self.fences: dict[str, int] = {}
        self.attempts: list[int] = []
        self.outcomes = Outcomes()
        self.asked = False
        self.requests = 0
        self.kinds = KindReader()
        self.dialer = Dialer(sessions.attach_worker, self._hello, self, pb.WorkerFrame, silence=30.0)
        self._sizes = sizes
        self._beat: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.dialer.start()
        self._beat = asyncio.create_task(self._beats())

    async def close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        await self.dialer.close()

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(self._sizes.heartbeat)
            self.ask()

    def _hello(self, hello: pb.Hello) -> pb.WorkerFrame:
        hello.name = "held"
        hello.functions.append(function_to_wire(FunctionSpec("f")))
        hello.pools.append(pb.Pool(name="default", functions=["f"], slots=4, limit=4))
        return pb.WorkerFrame(hello=hello)

    def end(self, *ids: str, ended: Ended | None = None) -> None:
        for id_ in ids:
            number = self.open.pop(id_)
            if ended is None:
                self.outcomes.succeeded.append(number)
            else:
                self.outcomes.ended[number] = ended
        self.dialer.notify()

    def ask(self) -> None:
        self.asked = True
        self.dialer.notify()

    def opened(self, resumed: bool) -> None:
        self.ask()

    def broken(self) -> None: ...

    def lost(self) -> None:
        self.open.clear()
        self.kinds = KindReader()
        self.requests = 0

    def compose(self) -> pb.WorkerFrame | None:
        if not (self.outcomes or self.asked):
            return None
        frame = pb.WorkerFrame()
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
            for index, id_ in enumerate(flight.ids):
                assert id_ not in self.open, "it runs already"
                self.open[id_] = ref(assign.flight, index)
                self.started.append(id_)
                self.fences[id_] = assign.fence[index]
            self.attempts += flight.attempts
        cancelled = set(frame.cancel)  # one that is not wanted by two is named twice
        self.end(*[id_ for id_, number in self.open.items() if number in cancelled], ended=Ended(Outcome.CANCELLED))


class Place:
    """A scheduler, its worker, and tailers of one log; `address` stays when the scheduler is replaced."""

    def __init__(self, environment: Any, parking: Any, sizes: LeaseSizes) -> None:
        self.sizes = sizes
        self.address = "127.0.0.1:0"
        self.tailers: list[Tailer] = []
        self._environment = environment
        self._parking = parking

    async def start(self) -> None:
        self.scheduler = SchedulerServer(SchedulerConfig(listen=self.address), self.sizes)
        await self.scheduler.start()
        self.address = self.scheduler.address
        self.streams = SchedulerSessions(self.address)
        self.worker = HeldWorker(self.streams, self.sizes)
        self.worker.start()

    async def tailer(self, **keys: Any) -> Tailer:
        keys = {"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f", **keys}
        config = TailerConfig.model_validate(keys)
        tailer = Tailer(config, Resources(self._environment, self.address, self._parking, self.sizes))
        self.tailers.append(tailer)
        await tailer.start()
        return tailer

    async def die(self, tailer: Tailer) -> None:
        """Ends a tailer although its items run, and waits until the scheduler knows."""
        await tailer.stop()
        await self.gone()

    async def gone(self) -> None:
        """Waits until the scheduler knows that no tailer is there."""
        async with asyncio.timeout(10):
            while any(each.connected for each in self.scheduler.core.tailers.values()):
                await asyncio.sleep(0.005)

    def has_owner(self) -> bool:
        """Whether a session that is connected holds two items."""
        return any(each.connected and each.held.items == 2 for each in self.scheduler.core.tailers.values())

    def sessions(self) -> list[Any]:
        """The tailers' sessions as the scheduler serves them."""
        return [each for each in self.scheduler._sessions.values() if isinstance(each.endpoint, TailerEnd)]

    async def end_scheduler(self) -> None:
        await self.worker.close()
        await self.streams.close()
        await self.scheduler.stop()

    async def stop(self) -> None:
        for tailer in self.tailers:
            await tailer.stop()
        await self.end_scheduler()


async def fill(stores: Any, count: int, keys: Sequence[str] = ()) -> None:
    await stores.log.append("s", 0, [Record(b"%d" % n, key=keys[n] if keys else "") for n in range(count)])


Begin = Callable[[LeaseSizes], Awaitable[Place]]


@pytest.fixture
async def begin(environment: Any, parking: Any) -> AsyncIterator[Begin]:
    places: list[Place] = []

    async def one(sizes: LeaseSizes) -> Place:
        place = Place(environment, parking, sizes)
        await place.start()
        places.append(place)
        return place

    yield one
    for place in places:
        await place.stop()
