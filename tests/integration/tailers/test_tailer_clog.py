"""Law 7 with the real scheduler and real tailers: an outage freezes, is probed, and copies no more than it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind, Outcomes, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer
from tailrace.wire.convert import KindReader, function_to_wire, read_items, write_outcomes
from tailrace.wire.scheduler import SchedulerSessions
from tailrace.wire.session import Dialer
from tailrace.wire.v1 import scheduler_pb2 as pb

LOG = {"kind": "log", "stream": "s"}
SIZES = LeaseSizes()
BROKEN = Ended(Outcome.RETRY, "the database is away")
#: Items that an outage parks at most: the failures that it takes to see it, and the rest of the worker's last frame.
BOUND = 45
QUICK = {"clog": {"first_probe": 0.05, "last_probe": 0.2}}


class Worker:
    """A worker that ends items as `decide` says, at most `limit` at once."""

    def __init__(self, address: str, decide: Callable[[Flight, int], Ended | None], limit: int = 16) -> None:
        self.decide = decide
        self.ids: Counter[str] = Counter()
        self._limit = limit
        self._kinds = KindReader()
        self._outbox = Outcomes()
        self._asked = 0
        self._ask = True
        self._sessions = SchedulerSessions(address)
        self.dialer = Dialer(self._sessions.attach_worker, self._hello, self, pb.WorkerFrame, silence=30.0)

    async def close(self) -> None:
        await self.dialer.close()
        await self._sessions.close()

    def _hello(self, hello: pb.Hello) -> pb.WorkerFrame:
        hello.functions.extend([function_to_wire(FunctionSpec(name)) for name in ("f", "g")])
        hello.pools.add(name="default", functions=["f", "g"], slots=self._limit, limit=self._limit)
        return pb.WorkerFrame(hello=hello)

    def opened(self, resumed: bool) -> None:
        self.dialer.notify()

    def broken(self) -> None: ...

    def lost(self) -> None: ...

    def compose(self) -> pb.WorkerFrame | None:
        if not (len(self._outbox) or self._ask):
            return None
        frame = pb.WorkerFrame()
        if self._ask:
            self._ask, self._asked = False, self._asked + 1
            frame.lease_request.number = self._asked
        if len(self._outbox):
            write_outcomes(frame.outcomes, self._outbox)
            self._outbox = Outcomes()
        return frame

    def accept(self, frame: pb.WorkerReply) -> None:
        for assign in frame.assigns:
            flight = read_items(assign.items, self._kinds, assign.flight, 0)
            for index, id_ in enumerate(flight.ids):
                self.ids[id_] += 1
                ended = self.decide(flight, index)
                if ended is None:
                    self._outbox.succeeded.append(ref(flight.number, index))
                else:
                    self._outbox.ended[ref(flight.number, index)] = ended
        self.dialer.notify()


@pytest.fixture
async def server() -> AsyncIterator[SchedulerServer]:
    server = SchedulerServer(SchedulerConfig.model_validate({"listen": "127.0.0.1:0", **QUICK}), SIZES)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def worker(server: SchedulerServer) -> AsyncIterator[Worker]:
    worker = Worker(server.address, lambda flight, index: None)
    worker.dialer.start()
    yield worker
    await worker.close()


@pytest.fixture
async def begin(environment, server, parking) -> AsyncIterator[Any]:
    started: list[Tailer] = []

    async def one(**keys: Any) -> Tailer:
        config = TailerConfig.model_validate({"name": "t", **keys})
        tailer = Tailer(config, Resources(environment, server.address, parking, SIZES))
        started.append(tailer)
        await tailer.start()
        return tailer

    yield one
    for tailer in started:
        await tailer.stop()


async def fill(stores, count: int, stream: str = "s") -> None:
    await stores.log.append(stream, 0, [Record(b"%d" % number) for number in range(count)])


async def test_an_outage_copies_no_more_than_what_it_takes_to_see_it(
    stores, parking, server, worker, begin, eventually
):
    # Given a function of which everything fails
    probes: list[str] = []
    worker.decide = lambda flight, index: BROKEN
    await fill(stores, 3000)
    # When a stream of its items is read
    tailer = await begin(source=LOG, function="f")
    await eventually(lambda: "f" in server.core.outages.closed)
    await eventually(lambda: tailer.overview().state == "clogged")
    assert "f is clogged" in tailer.overview().detail and "the database is away" in tailer.overview().detail
    before = sum(worker.ids.values())
    worker.decide = lambda flight, index: probes.append(flight.ids[index]) or BROKEN
    await eventually(lambda: len(probes) >= 8)
    # Then probes go one at a time, are not parked, and are not always the same item
    assert server.core.running <= 1 and len(set(probes)) > 1
    parked = len(parking.items)
    assert parked <= BOUND and parked <= before
    # And when the function works again, everything runs; only what was parked before the freeze went elsewhere
    worker.decide = lambda flight, index: None
    await eventually(lambda: (o := tailer.overview()).settled + o.parked == 3000)
    assert len(parking.items) == parked and {item.attempt for item in parking.items} == {2}
    assert not server.core.outages.closed
    await eventually(lambda: tailer.overview().state == "running")
    assert len(worker.ids) == 3000


async def test_one_failing_item_in_a_hundred_freezes_nothing(stores, parking, server, worker, begin, eventually):
    worker.decide = lambda flight, index: BROKEN if int(flight.payloads[index]) % 100 == 7 else None
    await fill(stores, 3000)
    tailer = await begin(source=LOG, function="f")
    await eventually(lambda: (o := tailer.overview()).settled + o.parked == 3000)
    assert len(parking.items) == 30
    assert server.core.returns.reasons["outage"] == 0


async def test_with_park_an_outage_goes_to_the_delay_service_as_any_failure(
    stores, parking, server, worker, begin, eventually
):
    worker.decide = lambda flight, index: BROKEN
    await fill(stores, 1000)
    tailer = await begin(source=LOG, function="f", on_outage="park")
    await eventually(lambda: tailer.overview().parked == 1000)
    assert "f" in server.core.outages.closed  # others are frozen, this one is not


async def test_the_other_functions_of_a_stream_go_on(stores, parking, server, worker, begin, eventually):
    # Given a stream of two functions, one of them broken
    worker.decide = lambda flight, index: BROKEN if flight.kinds[index].function == "f" else None
    records = [Record(b"", headers=(("to", name),)) for _ in range(500) for name in ("f", "g")]
    await stores.log.append("s", 0, records)
    # When it is read, then all of the other one run, and those of the broken one are held by position
    tailer = await begin(source=LOG, function={"header": "to"})
    await eventually(lambda: tailer.overview().settled == 500)
    assert "f is clogged" in tailer.overview().detail
    await eventually(lambda: (o := tailer.overview()).held + o.parked >= 498)  # the others are probes
    worker.decide = lambda flight, index: None
    await eventually(lambda: (o := tailer.overview()).settled + o.parked == 1000)
    assert tailer.overview().detail == ""


async def test_a_queue_spends_no_attempts_on_an_outage(stores, server, worker, begin, eventually):
    # Given a queue of a function that is broken
    worker.decide = lambda flight, index: BROKEN
    items = [NewItem(Kind("f", 2), b"") for _ in range(500)]
    ids = [one.id for one in await stores.queue.submit(items)]
    await begin(source={"kind": "queue"}, retry={"backoff": "list", "delays": [0], "max_attempts": 20, "jitter": 0})
    await eventually(lambda: "f" in server.core.outages.closed)
    await eventually(lambda: server.core.running == 0)
    worker.ids.clear()
    # When it lasts for some probes
    await eventually(lambda: worker.ids.total() >= 5)
    # Then few items were tried, and those that failed while it lasted have not spent an attempt
    attempts = [status.attempts for status in await stores.queue.status(ids)]
    assert sum(attempts) <= 2 * BOUND
    worker.decide = lambda flight, index: None
    await eventually(lambda: "f" not in server.core.outages.closed)


async def test_a_session_that_comes_later_hears_of_the_outage_and_may_probe(
    stores, parking, server, worker, begin, eventually
):
    worker.decide = lambda flight, index: BROKEN
    await fill(stores, 500)
    await begin(source=LOG, function="f")
    await eventually(lambda: "f" in server.core.outages.closed)
    await fill(stores, 500, "later")
    later = await begin(name="later", source={"kind": "log", "stream": "later"}, function="f")
    await eventually(lambda: any(id_.startswith("later/") for id_ in worker.ids))
    assert len([item for item in parking.items if item.tailer == "later"]) == 0
    worker.decide = lambda flight, index: None
    await eventually(lambda: later.overview().settled == 500)
    assert len(parking.items) <= BOUND
