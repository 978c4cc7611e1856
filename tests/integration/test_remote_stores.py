"""Each store's protocol over a server on loopback, in front of the embedded engines: what goes in comes out, errors
cross as themselves, and only the protocols' methods can be called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.sdk.model.claim import Settle, State
from tailrace.sdk.model.dead_letter import EVERY, DeadLetter, LetterFilter
from tailrace.sdk.model.demand import Cell, Closed, Demand
from tailrace.sdk.model.errors import (
    InvalidPayload,
    InvalidRequest,
    NotConnected,
    Overloaded,
    StaleFence,
    StoreFull,
    TailraceError,
    Unavailable,
)
from tailrace.sdk.model.function_spec import FunctionSpec
from tailrace.sdk.model.limits import Gate, Quota, Snapshot
from tailrace.sdk.model.priority import Priority
from tailrace.sdk.model.retry import Retry
from tailrace.sdk.model.workload import Extra, Kind
from tailrace.sdk.wire.channel import dial
from tailrace.sdk.wire.stores import LONGEST_WAIT, SERVICE, methods
from tailrace.sdk.wire.v1 import stores_pb2 as pb
from tailrace.sdk.wire.v1.stores_pb2_grpc import StoresStub
from tailrace.stores.checkpoints.checkpoints import Checkpoints, Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.control.control import Control
from tailrace.stores.dead_letters.dead_letters import DeadLetters
from tailrace.stores.inventory.inventory import Entry, Inventory
from tailrace.stores.log.log import Bounds, Log, Record
from tailrace.stores.protocols import PROTOCOLS
from tailrace.stores.queue.queue import NewItem, Queue
from tailrace.stores.remote import (
    RemoteCheckpoints,
    RemoteControl,
    RemoteDeadLetters,
    RemoteDrops,
    RemoteInventory,
    RemoteLedger,
    RemoteLog,
    RemoteOwnership,
    RemoteQueue,
    RemoteReplays,
    RemoteResults,
    RemoteSegments,
)
from tailrace.stores.server import StoreServer

KIND = Kind("charge", int(Priority.INTERACTIVE), "invoices", "acme")
DEMAND = Demand({Cell("charge", 0): 10}, frozenset({Closed("other", reason="paused")}), 10)
NOT_UTF8 = b"\x00\xff\xfe"


@asynccontextmanager
async def serving(engines: Mapping[str, object], listen: str = "127.0.0.1:0") -> AsyncIterator[str]:
    server = StoreServer(listen, engines)
    await server.start()
    try:
        yield server.address
    finally:
        await server.stop()


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    config = StoresConfig(durability="relaxed", max_payload=1000, max_waiting=100)
    async with EmbeddedStores(tmp_path / "data", config) as stores, serving(stores.engines()) as address:
        yield address


# What goes in comes out.


async def test_a_workload_goes_through_its_life(address: str) -> None:
    async with RemoteQueue(address) as remote:
        queue: Queue = remote

        [first, again] = await queue.submit(
            [
                NewItem(KIND, NOT_UTF8, key="k", headers=(("trace", "1"),), dedupe_key="once"),
                NewItem(KIND, b"other", dedupe_key="once"),
            ]
        )
        leased = await queue.lease(DEMAND, seconds=30.0, wait=0.0)

        assert (first.duplicate, again) == (False, (first.id, True))
        assert leased is not None
        assert (leased.ids, leased.kinds, leased.payloads, leased.attempts) == ([first.id], [KIND], [NOT_UTF8], [1])
        assert leased.extras == {0: Extra(key="k", headers=(("trace", "1"),))}

        renewed = await queue.renew(leased.ids, leased.fence, 30.0, State.PROCESSING)
        assert (renewed.lost, renewed.cancel) == ([], [])
        assert await queue.cancel([first.id, "0" * 16]) == ["requested", "unknown"]
        assert (await queue.renew(leased.ids, leased.fence, 30.0, State.PROCESSING)).cancel == [first.id]

        end = Settle(first.id, leased.fence, State.FATAL_FAILURE, attempts=1, reason="no such card")
        assert await queue.settle(leased.fence, [], [end]) == []

        [status, unknown] = await queue.status([first.id, "0" * 16])
        assert unknown is None
        assert status is not None
        assert (status.state, status.kind, status.reason) == (State.FATAL_FAILURE, KIND, "no such card")
        assert isinstance(status.state, State)
        assert (await queue.counts())["fatal_failure"] == 1


async def test_a_lease_waits_at_the_server_for_what_another_client_submits(address: str) -> None:
    async with RemoteQueue(address) as one, RemoteQueue(address) as other:
        waiting = asyncio.create_task(one.lease(DEMAND, 30.0, LONGEST_WAIT))
        [made] = await other.submit([NewItem(KIND, b"")])

        leased = await waiting

        assert leased is not None
        assert leased.ids == [made.id]


async def test_nothing_due_is_none(address: str) -> None:
    async with RemoteQueue(address) as queue:
        assert await queue.lease(DEMAND, 30.0, 0.0) is None


async def test_records_are_read_as_they_were_appended(address: str) -> None:
    records = [Record(NOT_UTF8, f"key {number}", (("n", str(number)),)) for number in range(300)]
    async with RemoteLog(address) as remote:
        log: Log = remote
        await log.create("s", 2)

        assert await log.append("s", 1, records) == 0
        assert await log.append("s", 1, [Record(b"last")]) == 300

        found = await log.read("s", 1, 1, 298, 1 << 20)
        assert found.positions == list(range(1, 299))
        assert found.payloads == [NOT_UTF8] * 298
        assert (found.keys[0], found.headers[-1]) == ("key 1", (("n", "298"),))
        assert await log.bounds("s") == {0: Bounds(0, 0), 1: Bounds(0, 301)}
        await log.trim("s", 1, 300)
        assert (await log.bounds("s"))[1] == Bounds(300, 301)
        assert await log.streams() == ["s"]


async def test_the_delay_log_is_a_log_of_its_own(address: str) -> None:
    async with RemoteLog(address) as log, RemoteLog(address, "delay_log") as delay_log:
        await delay_log.append("delay.1s", 0, [Record(b"parked")])

        assert await delay_log.streams() == ["delay.1s"]
        assert await log.streams() == []


async def test_a_wait_for_records_ends_with_an_append(address: str) -> None:
    async with RemoteLog(address) as one, RemoteLog(address) as other:
        await one.create("s", 1)
        waiting = asyncio.create_task(one.wait("s", {0: 0}, LONGEST_WAIT))
        await other.append("s", 0, [Record(b"x")])

        async with asyncio.timeout(LONGEST_WAIT / 2):
            await waiting


async def test_a_newer_epoch_fences_the_older_one(address: str) -> None:
    async with RemoteCheckpoints(address) as remote:
        checkpoints: Checkpoints = remote
        assert await checkpoints.open("t", 4) == {}
        marks = {"0": Mark(7, NOT_UTF8, 12), "1": Mark(9)}
        await checkpoints.commit("t", 4, marks)

        assert await checkpoints.open("t", 5) == marks
        with pytest.raises(StaleFence, match="epoch 4 is over"):
            await checkpoints.commit("t", 4, {"0": Mark(8)})
        assert await checkpoints.load("t") == marks


async def test_dead_letters_are_listed_without_and_fetched_with_their_payload(address: str) -> None:
    letters = [
        DeadLetter(f"id {n}", "t", KIND, NOT_UTF8, "fatal", "broken", 3, 1, 10.0, 20.0 + n, "k", (("a", "b"),), "half")
        for n in range(3)
    ]
    async with RemoteDeadLetters(address) as remote:
        dead_letters: DeadLetters = remote
        await dead_letters.add(letters)

        assert [letter.id for letter in await dead_letters.list(LetterFilter(function="charge"), 2)] == ["id 0", "id 1"]
        [last] = await dead_letters.list(EVERY, limit=10, after=2)
        assert (last.id, last.payload) == ("id 2", b"")
        assert await dead_letters.get("id 1") == letters[1]
        assert await dead_letters.get("none") is None
        assert await dead_letters.remove([1, 1000]) == 1
        assert await dead_letters.count() == 2


async def test_results_are_kept_by_id(address: str) -> None:
    async with RemoteResults(address) as results:
        await results.put({"one": NOT_UTF8, "two": b""})

        assert [await results.get(id) for id in ("one", "two", "three")] == [NOT_UTF8, b"", None]


async def test_a_watcher_gets_the_snapshot_that_a_change_makes(address: str) -> None:
    spec = FunctionSpec(
        "charge", "2", Priority.REPORTING, Retry(delays=(1.0, 2.5)), timeout=1.5, description="takes money"
    )
    async with RemoteControl(address) as remote, RemoteControl(address) as operator:
        control: Control = remote
        before = await control.snapshot()
        waiting = asyncio.create_task(control.wait(before.version, LONGEST_WAIT))
        await operator.put_gate(Gate("charge", "invoices", "pause", "ops", "audit", 5.0))
        after = await waiting

        assert after is not None
        assert after == Snapshot(before.version + 1, [Gate("charge", "invoices", "pause", "ops", "audit", 5.0)])
        await operator.put_quota(Quota("charge", 3, 2.5))
        version = await operator.register([spec])
        assert await operator.register([spec]) == version

        full = await control.snapshot()
        assert (full.quotas, full.functions) == ([Quota("charge", 3, 2.5)], [spec])
        assert await control.wait(version, 0.0) is None


async def test_the_inventory_numbers_what_is_new(address: str) -> None:
    async with RemoteInventory(address) as remote:
        inventory: Inventory = remote
        assert await inventory.offer("folder", [Entry("a", "1"), Entry("b", "1"), Entry("a", "1")]) == 2
        assert await inventory.offer("folder", [Entry("a", "2"), Entry("b", "1")]) == 1

        found = await inventory.read("folder", 1, 10)
        assert (found.positions, found.names, found.versions) == ([1, 2], ["b", "a"], ["1", "2"])
        assert await inventory.end("folder") == 3
        await inventory.forget("folder")
        assert await inventory.end("folder") == 0


# Errors cross as themselves.


async def test_what_an_engine_refuses_is_refused_with_its_error_and_message(address: str) -> None:
    async with RemoteQueue(address) as queue:
        with pytest.raises(InvalidPayload, match="1001"):
            await queue.submit([NewItem(KIND, bytes(1001))])
        with pytest.raises(InvalidRequest, match="a lease of"):
            await queue.lease(DEMAND, 0.0, 0.0)
        with pytest.raises(Overloaded):
            await queue.submit([NewItem(KIND, b"")] * 101)
        assert await queue.lease(DEMAND, 30.0, 0.0) is None


class Failing:
    """A Results engine that raises what it was given."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def put(self, results: Mapping[str, bytes]) -> None:
        raise self._error

    async def get(self, id: str) -> bytes | None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        InvalidPayload("the payload is a list"),
        InvalidRequest("no such thing"),
        NotConnected("the results store is closed"),
        Overloaded("later", 7.5),
        StaleFence("too old"),
        StoreFull("no room on /data"),
        Unavailable("not now"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_error_of_a_store_crosses_as_itself(error: TailraceError) -> None:
    async with serving({"results": Failing(error)}) as address, RemoteResults(address) as results:
        with pytest.raises(type(error)) as raised:
            await results.put({"id": b""})

    assert (type(raised.value), str(raised.value)) == (type(error), str(error))
    assert getattr(raised.value, "retry_after", None) == getattr(error, "retry_after", None)


async def test_a_fault_in_an_engine_is_an_error_that_names_the_call_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving({"results": Failing(ZeroDivisionError("oops"))}) as address, RemoteResults(address) as results:
        with pytest.raises(TailraceError, match=r"results\.get failed: .*oops"):
            await results.get("id")

    assert "failed at get" in caplog.text


# Only what the protocols say.


async def call(address: str, store: str, method: str, arguments: Any) -> pb.StoreResult:
    async with dial(address) as channel:
        stub: Any = StoresStub(channel)  # type: ignore[no-untyped-call]
        encoded = arguments if isinstance(arguments, bytes) else msgspec.msgpack.encode(arguments)
        answer: pb.StoreResult = await stub.Call(pb.StoreCall(store=store, method=method, arguments=encoded))
        return answer


@pytest.mark.parametrize(
    ("store", "method"),
    [
        ("secrets", "get"),
        ("queue", "nothing"),
        ("queue", ""),
        ("queue", "open"),  # the engine's, not the protocol's
        ("queue", "sweep"),
        ("queue", "_now"),
        ("queue", "__init__"),
        ("log", "lease"),  # another protocol's
    ],
)
async def test_what_no_protocol_names_cannot_be_called(address: str, store: str, method: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(address, store, method, [])

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"there is no {store}.{method} here" in (raised.value.details() or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["s"],  # too few
        ["s", 0, [[b"x"]], "too many"],
        ["s", "0", [[b"x"]]],  # text for a number
        ["s", 0, [["text for bytes"]]],
        {"stream": "s"},
        b"",
        b"\xc1 is no MessagePack",
    ],
)
async def test_arguments_that_are_not_the_protocols_are_refused(address: str, arguments: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(address, "log", "append", arguments)

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert (raised.value.details() or "").startswith("log.append: ")


async def test_a_call_that_fits_into_no_message_is_refused_before_it_is_sent(address: str) -> None:
    async with RemoteLog(address) as log:
        with pytest.raises(InvalidRequest, match=r"log\.append: .* send less at once"):
            await log.append("s", 0, [Record(bytes(1 << 20))] * 16)

        assert await log.streams() == []


@pytest.mark.parametrize(
    ("store", "client"),
    [
        ("queue", RemoteQueue),
        ("log", RemoteLog),
        ("delay_log", RemoteLog),
        ("delay_queue", RemoteQueue),
        ("checkpoints", RemoteCheckpoints),
        ("dead_letters", RemoteDeadLetters),
        ("drops", RemoteDrops),
        ("results", RemoteResults),
        ("control", RemoteControl),
        ("inventory", RemoteInventory),
        ("ownership", RemoteOwnership),
        ("ledger", RemoteLedger),
        ("segments", RemoteSegments),
        ("replays", RemoteReplays),
    ],
)
def test_a_client_has_every_method_of_its_protocol(store: str, client: type[Any]) -> None:
    assert set(methods(PROTOCOLS[store])) <= set(vars(client))


# Servers that come and go.


async def test_a_server_that_is_gone_is_unavailable_and_one_that_comes_back_is_found(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path / "data", StoresConfig(durability="relaxed")) as stores:
        async with serving(stores.engines()) as address:
            results = RemoteResults(address)
            await results.put({"id": b"kept"})

        async with results:
            with pytest.raises(Unavailable, match="does not answer"):
                await results.get("id")
            await results.close()  # the next call dials anew, so that no back-off is waited for

            async with serving(stores.engines(), address):
                assert await results.get("id") == b"kept"


class Held:
    """A Log engine whose `wait` says when it was entered and then waits for ever."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return None  # the protocol's other methods, which nobody calls here

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        self.seconds = timeout
        self.entered.set()
        await asyncio.Event().wait()


async def test_a_drain_ends_the_waits_and_a_wait_has_a_bound() -> None:
    engine = Held()
    server = StoreServer("127.0.0.1:0", {"log": engine})
    await server.start()
    try:
        async with RemoteLog(server.address) as log, dial(server.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            words = health_pb2.HealthCheckResponse
            for name in ("", SERVICE):
                check = await health.Check(health_pb2.HealthCheckRequest(service=name))
                assert check.status == words.SERVING
            waiting = asyncio.create_task(log.wait("s", {}, 1e6))
            await engine.entered.wait()

            async with asyncio.timeout(LONGEST_WAIT / 2):
                await server.drain(LONGEST_WAIT)

            with pytest.raises(NotConnected, match="stopping"):
                await waiting
            assert engine.seconds == LONGEST_WAIT
    finally:
        await server.stop()
        await server.stop()
