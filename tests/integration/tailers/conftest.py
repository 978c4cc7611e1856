"""A scheduler small enough to be controlled: it grants credit and ends items as a test decides."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from scenes.ledger_rows import FIRST

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.demand import Cell
from tailrace.model.errors import InvalidRequest, NotConnected, Unavailable
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.parked import Parked
from tailrace.model.workload import Ended, Flight, Outcomes, ref
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.pumps.shared_pump import SharedPump
from tailrace.tailers.pumps.stream_pump import StreamPump
from tailrace.tailers.registry import Environment
from tailrace.tailers.resources import Resources
from tailrace.tailers.supervisor import Tailers
from tailrace.tailers.tailer import Tailer
from tailrace.wire.channel import serve
from tailrace.wire.convert import KindReader, function_to_wire, read_items, write_outcomes
from tailrace.wire.scheduler import serve_scheduler
from tailrace.wire.session import Served
from tailrace.wire.stream import Stream
from tailrace.wire.v1 import scheduler_pb2 as pb

sys.path.insert(0, str(Path(__file__).parent))
from held_worker import begin

__all__ = ["begin"]

#: (flight, index) → how the item ends; None: it stays out.
Decide = Callable[[Flight, int], Ended | None]
SUCCESS = Ended(Outcome.SUCCESS)


class Session:
    """The serving end of one tailer session."""

    def __init__(self, scheduler: FakeScheduler) -> None:
        self.scheduler = scheduler
        self.served = Served(self)
        self.kinds = KindReader()
        self.outbox = Outcomes()
        self.credit: pb.Credit | None = None
        self.request = 0
        self.ask = False
        self.store = ""  # its height is asked for
        self.grants: list[pb.LeaseGrant] = []
        self.draining = False

    def opened(self, resumed: bool) -> None:
        if not resumed:
            self.credit = self.scheduler.credit()

    def compose(self) -> pb.TailerReply | None:
        if not (len(self.outbox) or self.credit or self.ask or self.store):
            return None
        reply = pb.TailerReply()
        if self.credit:
            reply.credit.CopyFrom(self.credit)
            self.credit = None
        if len(self.outbox):
            write_outcomes(reply.outcomes, self.outbox)
            self.outbox = Outcomes()
        if self.ask:
            self.request += 1
            reply.lease_request.number = self.request
            self.ask = False
        if self.store:
            reply.height.store, self.store = self.store, ""  # which it never saw
        return reply

    def accept(self, frame: pb.TailerFrame) -> None:
        if frame.HasField("grant"):
            self.grants.append(frame.grant)
        self.draining = self.draining or frame.draining
        self.store = frame.store or self.store
        self.scheduler.cancelled.extend(frame.cancel)
        for push in frame.pushes:
            flight = read_items(push.items, self.kinds, push.flight, push.fence)
            self.scheduler.leases.append(push.lease)
            self.scheduler.flights.append(flight)
            for index in range(len(flight)):
                self.end(flight, index, self.scheduler.decide(flight, index))
        self.scheduler.changed.set()
        self.served.notify()

    def end(self, flight: Flight, index: int, ended: Ended | None) -> None:
        if ended is not None and ended.outcome == Outcome.SUCCESS and ended.result is None:
            self.outbox.succeeded.append(ref(flight.number, index))
        elif ended is not None:
            self.outbox.ended[ref(flight.number, index)] = ended
        self.served.notify()

    def broken(self) -> None:
        pass

    def lost(self) -> None:
        pass


class FakeScheduler:
    """A server of AttachTailer. `decide` may be replaced at any time; `cells` and `closed` are told with credit."""

    def __init__(self, decide: Decide = lambda flight, index: SUCCESS) -> None:
        self.decide = decide
        self.limits: dict[Cell, int] = {}
        self.total = 4096
        self.closed: list[pb.ClosedCell] = []
        self.functions: list[FunctionSpec] = []
        self.sessions: dict[str, Session] = {}
        self.flights: list[Flight] = []
        self.leases: list[float] = []
        self.cancelled: list[int] = []
        self.began: Callable[[], None] = lambda: None  # called when a session begins anew, with nothing out
        self.changed = asyncio.Event()
        self.address = ""
        self._server: Any = None

    async def start(self, address: str = "127.0.0.1:0") -> None:
        self._server, self.address = await serve(address, [serve_scheduler(self)])  # type: ignore[arg-type]

    async def stop(self) -> None:
        await self._server.stop(0)

    async def restart(self) -> None:
        """Starts another scheduler process at the same address: it knows no session."""
        await self.stop()
        self.sessions.clear()
        await self.start(self.address)

    def allow(self, function: str, limit: int = 1000, priority: int = 2, spec: FunctionSpec | None = None) -> None:
        self.limits[Cell(function, priority)] = limit
        self.functions.append(spec or FunctionSpec(function))
        self.announce()

    def announce(self) -> None:
        for session in self.sessions.values():
            session.credit = self.credit()
            session.served.notify()

    def credit(self) -> pb.Credit:
        credit = pb.Credit(total=self.total, closed_changed=True, closed=self.closed)
        for cell, limit in self.limits.items():
            credit.cells.add(function=cell.function, priority=cell.priority, limit=limit)
        credit.functions.extend(function_to_wire(spec) for spec in self.functions)
        return credit

    def ask_for_leases(self) -> None:
        for session in self.sessions.values():
            session.ask = True
            session.served.notify()

    @property
    def session(self) -> Session:
        return next(reversed(self.sessions.values()))

    @property
    def ids(self) -> list[str]:
        return [id_ for flight in self.flights for id_ in flight.ids]

    async def attach_tailer(self, connection: Stream) -> None:
        frame = await connection.receive()
        known = self.sessions.get(frame.hello.session) if frame.hello.resume else None
        if known is None:
            self.began()
        session = known or Session(self)
        self.sessions[frame.hello.session] = session
        welcome = pb.Welcome(scheduler="fake", session=frame.hello.session, heartbeat=0.5)
        reply = pb.TailerReply(welcome=welcome)
        reply.welcome.resumed = known is not None
        self.changed.set()
        await session.served.serve(connection, frame, reply, empty=pb.TailerReply, silence=10.0, clock=SYSTEM_CLOCK)


class FakeParking:
    """A delay service that remembers. `failures` parks are refused first; a delay beyond `most` is refused for good."""

    def __init__(self, failures: int = 0, most: float = 1e9) -> None:
        self.items: list[Parked] = []
        self.failures = failures
        self.most = most

    async def park(self, items: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the delay service is away")
        for item in items:
            if item.due - item.first_seen > self.most:
                raise InvalidRequest("the delay is beyond the maximum")
        self.items.extend(items)


async def until(condition: Callable[[], bool], timeout: float = 30.0) -> None:
    """Waits for something that no event announces, looking often."""
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
async def scheduler() -> AsyncIterator[FakeScheduler]:
    fake = FakeScheduler()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
def parking() -> FakeParking:
    return FakeParking()


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[EmbeddedStores]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        yield stores


@pytest.fixture
def environment(stores: EmbeddedStores) -> Environment:
    return tailers_environment(stores)


Start = Callable[..., Awaitable[Tailer]]
StartAll = Callable[..., Awaitable[Tailers]]


@pytest.fixture
async def start(environment: Environment, scheduler: FakeScheduler, parking: FakeParking) -> AsyncIterator[Start]:
    """Starts a tailer from the keys of its file, with leases of seconds."""
    started: list[Tailer] = []

    async def one(heartbeat: float = 0.1, **keys: Any) -> Tailer:
        config = TailerConfig.model_validate({"name": "t", **keys})
        tailer = Tailer(config, Resources(environment, scheduler.address, parking, LeaseSizes.of_heartbeat(heartbeat)))
        started.append(tailer)
        await tailer.start()
        return tailer

    yield one
    for tailer in started:
        if isinstance(
            tailer._pump, StreamPump | SharedPump
        ):  # law of every test: each position is in exactly one class
            with suppress(NotConnected):  # it ended before it had read anything
                assert [audit.verdict() for audit in tailer.audits() if not audit.good] == []
            assert tailer._pump.status().unaccounted == 0
        await tailer.stop()


@pytest.fixture
async def start_all(
    environment: Environment, scheduler: FakeScheduler, parking: FakeParking
) -> AsyncIterator[StartAll]:
    """Starts all tailers of a node; each call is another process, the one before it having been stopped."""
    running: list[Tailers] = []

    async def start(environment: Environment = environment) -> Tailers:
        while running:
            await running.pop().stop()
        tailers = Tailers([FIRST], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1))
        running.append(tailers)
        await tailers.start()
        return tailers

    yield start
    while running:
        await running.pop().stop()


@pytest.fixture
def eventually() -> Callable[..., Awaitable[None]]:
    return until
