"""The scheduler's server with a fake tailer and a fake worker, over loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.sdk.model.errors import InvalidPayload, Unavailable, UnknownFunction
from tailrace.sdk.model.function_spec import FunctionSpec
from tailrace.sdk.model.lease import LeaseSizes, grant_to_scheduler
from tailrace.sdk.model.limits import Gate, Quota
from tailrace.sdk.model.outcome import Outcome
from tailrace.sdk.model.priority import Priority
from tailrace.sdk.model.workload import Ended, Extra, Flight, Kind, Outcomes, ref
from tailrace.sdk.wire.channel import dial
from tailrace.sdk.wire.convert import (
    KindReader,
    KindWriter,
    function_to_wire,
    read_items,
    read_outcomes,
    write_items,
    write_outcomes,
)
from tailrace.sdk.wire.link import Link
from tailrace.sdk.wire.scheduler import SERVICE, SchedulerClient
from tailrace.sdk.wire.session import Dialer
from tailrace.sdk.wire.v1 import scheduler_pb2 as pb

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
    """Pushes what a test says and grants what it is asked for, as long as `renews`."""

    def __init__(self, client: SchedulerClient, name: str = "orders") -> None:
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
        self.streams = Streams(client.attach_tailer)
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
        client: SchedulerClient,
        *functions: str,
        limit: int = 1000,
        answer: Callable[[Flight, int], Ended | None] | None = None,
        hold: bool = False,
    ) -> None:
        super().__init__()
        self.specs = [FunctionSpec(name, priority=Priority.USER_VISIBLE) for name in functions]
        self.pool = pb.Pool(name="default", functions=functions, slots=limit, limit=limit)
        self.answer = answer
        self.hold = hold
        self.kinds = KindReader()
        self.outcomes = Outcomes()
        self.flights: dict[int, Flight] = {}
        self.groups: dict[int, int] = {}
        self.leases: list[float] = []
        self.extras: list[Extra] = []
        self.grants: list[pb.LeaseGrants] = []
        self.cancelled: list[int] = []
        self.open: dict[int, str] = {}
        self.requests = 0
        self.asked = False
        self.draining = False
        self.resumes: list[bool] = []
        self.losses = 0
        self.streams = Streams(client.attach_worker)
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

    def compose(self) -> pb.WorkerFrame | None:
        if not (self.outcomes or self.asked or self.draining):
            return None
        frame = pb.WorkerFrame(draining=self.draining)
        self.draining = False
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
    """A scheduler, and whatever a test attaches to it; everything is closed at the end."""

    def __init__(self) -> None:
        self.client: SchedulerClient
        self.server: SchedulerServer
        self.attached: list[FakeTailer | FakeWorker] = []

    async def start(self, watch: Any = None, **config: Any) -> None:
        self.server = SchedulerServer(SchedulerConfig(listen="127.0.0.1:0", **config), SIZES, watch)
        await self.server.start()
        self.client = SchedulerClient(self.server.address)

    async def tailer(self, *functions: str, name: str = "orders") -> FakeTailer:
        """A tailer that has credit for each of these functions."""
        tailer = FakeTailer(self.client, name)
        self.attached.append(tailer)
        tailer.dialer.start()
        await tailer.until(lambda: tailer.request and all((name, 0) in tailer.cells for name in functions))
        return tailer

    async def worker(self, *functions: str, **options: Any) -> FakeWorker:
        worker = FakeWorker(self.client, *functions, **options)
        self.attached.append(worker)
        worker.dialer.start()
        await worker.until(lambda: worker.grants)
        return worker

    async def close(self) -> None:
        for each in self.attached:
            await each.dialer.close()
        await self.client.close()
        await self.server.stop()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    made = Place()
    await made.start()
    yield made
    await made.close()


SEND = Kind("send", 1, "reset", "ann")


async def test_a_pushed_item_runs_and_its_outcome_comes_back(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    refs = tailer.push(SEND, SEND._replace(tenant="bob"), SEND, ids=["a", "b", "c"])
    assert await tailer.ended(refs) == [None, None, None]
    (flight,) = worker.flights.values()
    assert (flight.ids, flight.payloads) == (["a", "b", "c"], [b"a", b"b", b"c"])
    assert flight.kinds == [SEND, SEND._replace(tenant="bob"), SEND]
    assert 0 < worker.leases[0] <= SIZES.worker
    assert tailer.functions["send"].priority == Priority.USER_VISIBLE


async def test_ends_travel_whole(place: Place) -> None:
    ends = {
        "r": Ended(Outcome.RETRY, "boom", after=3.0, progress="half"),
        "f": Ended(Outcome.FATAL, "no"),
        "s": Ended(Outcome.SUCCESS, result=b"42"),
        "l": Ended(Outcome.LOST, "killed", crashed=True),
        "h": Ended(Outcome.HELD, "drained"),
    }
    await place.worker("send", answer=lambda flight, index: ends[flight.ids[index]])
    tailer = await place.tailer("send")
    refs = tailer.push(*[SEND] * len(ends), ids=list(ends))
    assert await tailer.ended(refs) == list(ends.values())


async def test_suspects_and_headers_travel(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    extra = Extra(key="k", headers=(("h", "v"),), crashes=2, alone=True, progress="p")
    await tailer.ended(tailer.push(SEND, SEND, extras={1: extra}))
    assert worker.extras == [extra]


async def test_an_item_past_its_expiry_ends_as_expired(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    (ended,) = await tailer.ended(tailer.push(SEND, extras={0: Extra(expires_at=1.0)}))
    assert ended is not None and ended.outcome == Outcome.EXPIRED and not worker.flights


async def test_items_of_a_function_without_worker_have_no_cell_and_come_back_held(place: Place) -> None:
    tailer = await place.tailer()
    assert tailer.cells == {}
    (ended,) = await tailer.ended(tailer.push(Kind("nobody")))
    assert ended == Ended(Outcome.HELD, "no_worker")


async def test_cancel_reaches_waiting_and_running_items(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    tailer.cancel = [running, waiting]
    tailer.dialer.notify()
    ends = await tailer.ended([running, waiting])
    assert [end.outcome for end in ends if end] == [Outcome.CANCELLED] * 2
    assert len(worker.cancelled) == 1


async def test_leases_are_renewed_by_group_and_unlisted_flights_are_revoked(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    tailer.push(SEND)
    tailer.push(SEND)
    await worker.until(lambda: len(worker.open) == 2)
    worker.ask()
    await worker.until(lambda: worker.grants[-1].groups)
    assert worker.grants[-1].groups[0].group == worker.groups[1]
    assert 0 < worker.grants[-1].groups[0].lease <= SIZES.worker
    del tailer.open[1]
    await worker.until(lambda: worker.cancelled)
    assert worker.cancelled == [ref(1, 0)]
    assert ref(1, 0) not in tailer.ends


async def test_a_gate_sends_waiting_items_back_and_is_announced(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    first, second, third = tailer.push(SEND, SEND, SEND._replace(collection="news"))
    await worker.until(lambda: worker.open)
    gates = [Gate("send", "reset", "pause", "ann", "outage"), Gate("send", "news", "drop")]
    place.server._apply(SimpleNamespace(gates=gates, quotas=[], functions=[], version=1))
    held, dropped = await tailer.ended([second, third])
    assert held == Ended(Outcome.HELD, "paused")
    assert dropped is not None and dropped.outcome == Outcome.DROPPED
    await tailer.until(lambda: len(tailer.closed) == 2)
    assert {(cell.collection, cell.drop) for cell in tailer.closed} == {("reset", False), ("news", True)}
    assert first not in tailer.ends
    place.server._apply(SimpleNamespace(gates=[], quotas=[], functions=[], version=2))
    await tailer.until(lambda: not tailer.closed)


async def test_nothing_is_admitted_before_the_first_snapshot() -> None:
    place = Place()
    go = asyncio.Event()

    async def watch(on_snapshot: Callable[[Any], None]) -> None:
        await go.wait()
        on_snapshot(SimpleNamespace(gates=[], quotas=[Quota("send", concurrency=2)], functions=[], version=1))
        await asyncio.Event().wait()

    await place.start(watch)
    channel = dial(place.server.address)
    try:
        health = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        worker = await place.worker("send", hold=True)
        tailer = await place.tailer()
        assert tailer.cells == {}
        (ended,) = await tailer.ended(tailer.push(SEND))
        assert ended == Ended(Outcome.HELD, "not_ready")
        assert not (await place.client.inspect()).ready
        with pytest.raises(grpc.aio.AioRpcError):
            await health.Check(request)
        go.set()
        await tailer.until(lambda: tailer.cells)
        assert (await health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        tailer.push(*[SEND] * 5)
        await worker.until(lambda: len(worker.open) == 2)
        state = await place.client.inspect()
        assert state.ready and [(lane.waiting, lane.running, lane.reason) for lane in state.lanes] == [
            (3, 2, "concurrency")
        ]
    finally:
        await channel.close()
        await place.close()


async def test_a_broken_connection_that_heals_restarts_nothing(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(SEND, SEND)
    await worker.until(lambda: len(worker.open) == 2)
    worker.streams.cut()
    tailer.streams.cut()
    await worker.until(lambda: worker.resumes == [False, True])
    for each in list(worker.open):
        worker.end(each)
    assert await tailer.ended(refs) == [None, None]
    assert len(worker.flights) == 1 and tailer.losses == worker.losses == 0


async def test_a_worker_that_stays_away_is_answered_lost_after_its_lease(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(SEND)
    await worker.until(lambda: worker.open)
    await worker.dialer.close()
    (ended,) = await tailer.ended(refs)
    assert ended is not None and ended.outcome == Outcome.LOST and ended.reason.startswith("worker_lost")


async def test_waiting_items_come_back_when_the_last_worker_has_gone(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    _, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    await worker.dialer.close()
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "no_worker")]
    await tailer.until(lambda: tailer.cells["send", 1] == 0)


async def test_a_draining_worker_gets_nothing_more(place: Place) -> None:
    old = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    first = tailer.push(SEND)
    await old.until(lambda: old.open)
    old.draining = True
    old.dialer.notify()
    new = await place.worker("send")
    assert await tailer.ended(tailer.push(SEND, SEND)) == [None, None]
    assert len(new.flights) == 1 and len(old.flights) == 1
    old.end(next(iter(old.open)))
    assert await tailer.ended(first) == [None]


async def test_a_draining_tailer_gets_back_what_has_not_started(place: Place) -> None:
    # Given two tailers, of each an item that waits for the only slot
    worker = await place.worker("send", limit=1, hold=True)
    tailer, other = await place.tailer("send", name="orders"), await place.tailer("send", name="others")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    theirs = other.push(SEND)
    # When one of them drains
    tailer.draining = True
    tailer.dialer.notify()
    # Then it waits for what runs alone, and the other one's turn comes
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "draining")]
    assert running not in tailer.ends
    worker.end(next(iter(worker.open)))
    assert await tailer.ended([running]) == [None]
    await worker.until(lambda: worker.open)
    worker.end(next(iter(worker.open)))
    assert await other.ended(theirs) == [None]


async def test_draining_hands_back_what_waits_and_waits_for_what_runs(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    draining = asyncio.create_task(place.server.drain(20.0))
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "draining")]
    assert not draining.done()
    worker.end(next(iter(worker.open)))
    assert await tailer.ended([running]) == [None]
    async with asyncio.timeout(10):
        await draining


async def test_draining_waits_for_outcomes_only(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given sessions that were told of credit and leases, and never acknowledge what they are told
    monkeypatch.setattr(Link, "acknowledged", lambda link, number: None)
    await place.worker("send")
    await place.tailer("send")
    # Then draining ends at once, since nothing ran and no outcome is on its way
    async with asyncio.timeout(10):
        await place.server.drain(60.0)


async def test_a_frame_that_cannot_be_right_ends_the_session(place: Place) -> None:
    tailer = await place.tailer()
    bad = pb.Push(flight=1, fence=1)
    bad.items.id.append("a")
    tailer.pending.append(bad)
    tailer.dialer.notify()
    await tailer.until(lambda: tailer.losses == 1)


async def test_execute_answers_with_the_outcome(place: Place) -> None:
    ends = {"ok": Ended(Outcome.SUCCESS, result=b"1"), "no": Ended(Outcome.RETRY, "boom", after=2.0)}
    worker = await place.worker("send", answer=lambda flight, index: ends.get(flight.ids[index]))
    assert await place.client.execute("send", b"{}", id="ok", headers=(("h", "v"),), timeout=10) == ends["ok"]
    assert await place.client.execute("send", id="no", timeout=10) == ends["no"]
    assert await place.client.execute("send", timeout=10) == Ended(Outcome.SUCCESS)
    assert worker.extras[0].headers == (("h", "v"),)
    assert next(iter(worker.flights.values())).kinds[0].priority == Priority.USER_VISIBLE


async def test_execute_refuses_what_cannot_run(place: Place) -> None:
    with pytest.raises(UnknownFunction, match="nobody"):
        await place.client.execute("nobody", timeout=10)
    await place.worker("send")
    with pytest.raises(InvalidPayload, match="4194305"):
        await place.client.execute("send", bytes((4 << 20) + 1), timeout=10)


async def test_execute_of_a_registered_function_waits_for_a_worker_until_its_deadline(place: Place) -> None:
    place.server._apply(SimpleNamespace(gates=[], quotas=[], functions=[FunctionSpec("send")], version=1))
    with pytest.raises(Unavailable):
        await place.client.execute("send", timeout=0.2)
    call = asyncio.create_task(place.client.execute("send", timeout=20))
    await place.worker("send")
    assert await call == Ended(Outcome.SUCCESS)


async def test_a_call_given_up_cancels_the_workload(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    call = asyncio.create_task(place.client.execute("send", id="x"))
    await worker.until(lambda: worker.open)
    explained = await place.client.explain("x")
    assert (explained.state, explained.reason, explained.worker) == ("running", "running", "worker")
    call.cancel()
    await worker.until(lambda: worker.cancelled)
    assert not (await place.client.explain("x")).known
