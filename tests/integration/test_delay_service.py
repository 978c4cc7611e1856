"""Parking and moving over the real embedded log and checkpoints, under a clock that the tests set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import LONGEST_TOGETHER, Mover
from tailrace.delay_service.records import UNREADABLE, rung_stream, rung_wait
from tailrace.delay_service.service import DelayServer, DelayService
from tailrace.sdk.model.errors import InvalidRequest, NotConnected, Overloaded, StaleFence, StoreFull
from tailrace.sdk.model.parked import Parked, due_stream, parked_from
from tailrace.sdk.model.workload import Kind
from tailrace.sdk.wire.delay import DelayClient
from tailrace.stores.checkpoints import sqlite as checkpoints_sqlite
from tailrace.stores.checkpoints.sqlite import SqliteCheckpoints
from tailrace.stores.log import sqlite as log_sqlite
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SqliteLog
from tailrace.stores.ownership import sqlite as ownership_sqlite
from tailrace.stores.ownership.sqlite import SqliteOwnership
from tailrace.stores.sqlite import SqliteFile

NOW = 1_700_000_000.0


class FakeClock:
    """Both clocks move only by `pass_`; `set_wall` steps the wall clock alone."""

    def __init__(self) -> None:
        self._wall, self._monotonic = NOW, 50.0

    def wall(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def pass_(self, seconds: float) -> None:
        self._wall += seconds
        self._monotonic += seconds

    def set_wall(self, wall: float) -> None:
        self._wall = wall


class Bench:
    """A log, checkpoints, a service and a mover whose rungs are stepped by hand."""

    def __init__(self, log: SqliteLog, state: SqliteFile, clock: FakeClock, config: DelayConfig) -> None:
        self.log, self.clock, self.config = log, clock, config
        self.checkpoints, self.ownership = SqliteCheckpoints(state), SqliteOwnership(state, clock)
        self.service = DelayService(log, config, clock)
        self.mover = Mover(log, self.checkpoints, self.ownership, config, clock)
        self.arrived: list[tuple[str, float]] = []
        self._read = 0

    async def settle(self) -> float | None:
        """Steps every rung until none can move; returns how long until the next may."""
        while True:
            before = [rung.position for rung in self.mover._rungs]
            sleeps = [await self.mover.step(rung) for rung in self.mover._rungs]
            await self._note()
            if before == [rung.position for rung in self.mover._rungs]:
                return min((sleep for sleep in sleeps if sleep is not None), default=None)

    async def _note(self) -> None:
        found = await self.log.read(due_stream("f"), 0, self._read, 10_000, 1 << 30)
        for headers, payload in zip(found.headers, found.payloads, strict=True):
            self.arrived.append((parked_from(headers, payload).id, self.clock.wall()))
        self._read += len(found.positions)

    async def run(self) -> None:
        """Lets time pass until nothing waits any more."""
        while (sleep := await self.settle()) is not None:
            self.clock.pass_(max(LONGEST_TOGETHER, sleep))


def parked(id: str, delay: float, payload: bytes = b"x", function: str = "f") -> Parked:
    return Parked("orders", id, Kind(function), payload, NOW + delay, NOW - 10)


@asynccontextmanager
async def opened(folder: Path, clock: FakeClock, config: DelayConfig) -> AsyncIterator[Bench]:
    log_file = SqliteFile(folder / "log.sqlite", log_sqlite.SCHEMA, name="log")
    schema = checkpoints_sqlite.SCHEMA + ownership_sqlite.SCHEMA
    state = SqliteFile(folder / "state.sqlite", schema, name="state")
    await log_file.open()
    await state.open()
    try:
        log = SqliteLog(log_file, clock)
        await log.open()
        bench = Bench(log, state, clock, config)
        await bench.mover.open()
        yield bench
    finally:
        await log_file.close()
        await state.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def bench(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Bench]:
    async with opened(tmp_path, clock, DelayConfig()) as running:
        yield running


async def test_every_item_comes_out_once_never_early_and_within_its_bound(bench: Bench) -> None:
    delays = [0.0, 0.2, 1.0, 4.0, 5.0, 6.1, 28.5, 60.0, 61.0, 333.3, 4000.0, 100_000.0, 30 * 86_400.0]
    await bench.service.park([parked(str(index), delay) for index, delay in enumerate(delays)])
    await bench.run()
    left = dict(bench.arrived)
    assert len(bench.arrived) == len(left) == len(delays)
    for index, delay in enumerate(delays):
        late = left[str(index)] - (NOW + delay)
        assert 0 <= late <= max(1.0, 0.05 * delay) + 0.01
    assert [depth.items for depth in await bench.service.depth() if depth.wait] == [0] * 7


async def test_what_was_parked_comes_back_whole(bench: Bench) -> None:
    item = Parked(
        tailer="orders",
        id="orders/0/7",
        kind=Kind("f", 1, "vip", "acme"),
        payload=b"\x00\xff not text",
        due=NOW + 7.5,
        first_seen=NOW - 3,
        attempt=4,
        crashes=1,
        throttles=2,
        reason="503 from the shop: é",
        key="customer-1",
        headers=(("trace", "abc"), ("due", "mine")),
        expires_at=NOW + 99,
        progress="half",
        partition="3",
        position=7,
        n=2,
    )
    await bench.service.park([item])
    await bench.run()
    found = await bench.log.read(due_stream("f"), 0, 0, 10, 1 << 20)
    assert [parked_from(*pair) for pair in zip(found.headers, found.payloads, strict=True)] == [item]
    assert found.keys == ["customer-1"]


async def test_items_of_one_delay_keep_their_order(bench: Bench) -> None:
    for index in range(300):
        await bench.service.park([parked(f"{index:03}", 5.0 + index * 0.01)])
        bench.clock.pass_(0.01)
    await bench.run()
    assert [id for id, _ in bench.arrived] == [f"{index:03}" for index in range(300)]


async def test_a_crash_between_append_and_commit_copies_but_loses_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig()) as before:
        await before.service.park([parked(str(index), 1.0) for index in range(10)])
        clock.pass_(1.5)
        rung = before.mover._rungs[0]
        position, _ = await rung.move()  # appended, and then the process is gone
        assert position == 10
    async with opened(tmp_path, clock, DelayConfig()) as after:
        await after.run()
        ids = [id for id, _ in after.arrived]
        assert sorted(ids) == sorted([str(index) for index in range(10)] * 2)


async def test_a_restart_goes_on_where_it_was(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig()) as before:
        await before.service.park([parked(str(index), 1.0 + index) for index in range(8)])
        clock.pass_(3.2)
        await before.settle()
        early = [id for id, _ in before.arrived]
    clock.pass_(86_400.0)  # down for a day
    async with opened(tmp_path, clock, DelayConfig()) as after:
        await after.settle()
        assert sorted(id for id, _ in after.arrived) == [str(index) for index in range(8)]
        assert set(early) < {str(index) for index in range(8)}


async def test_a_clock_set_back_never_makes_an_item_early_by_the_wall(bench: Bench) -> None:
    await bench.service.park([parked("a", 40.0), parked("b", 3.0)])
    bench.clock.pass_(2.0)
    bench.clock.set_wall(NOW - 500.0)
    await bench.run()
    left = dict(bench.arrived)
    assert 0 <= left["a"] - (NOW + 40.0) <= 2.01
    assert 0 <= left["b"] - (NOW + 3.0) <= 1.01


async def test_a_rung_that_is_no_longer_configured_is_emptied(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig(rungs=(1.0, 45.0), max_delay=3600.0)) as before:
        await before.service.park([parked("a", 45.0)])
        assert [depth.items for depth in await before.service.depth()] == [0, 1]
    async with opened(tmp_path, clock, DelayConfig(rungs=(1.0, 5.0, 600_000.0))) as after:
        await after.run()
        assert [id for id, _ in after.arrived] == ["a"]
        assert after.arrived[0][1] >= NOW + 45.0


async def test_due_items_wait_by_function(bench: Bench) -> None:
    await bench.service.park([parked("a", -1.0), parked("b", 0.0, function="g")])
    depths = {depth.stream: depth.items for depth in await bench.service.depth() if depth.wait == 0}
    assert depths == {"due.f": 1, "due.g": 1}


async def test_parks_are_refused_when_full_and_moves_are_not(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig(max_items=10, max_bytes=1000)) as bench:
        await bench.service.park([parked(str(index), 5.0) for index in range(10)])
        with pytest.raises(Overloaded, match="max_items") as refused:
            await bench.service.park([parked("one more", 5.0)])
        assert refused.value.retry_after > 0
        await bench.run()
        assert len(bench.arrived) == 10
        await bench.log.trim(due_stream("f"), 0, 10)  # its tailer has settled them
        bench.clock.pass_(1.0)
        await bench.service.park([parked("a", 5.0, b"x" * 900)])
        with pytest.raises(Overloaded, match="max_bytes"):
            await bench.service.park([parked("b", 5.0, b"x" * 200)])


async def test_parks_at_once_cannot_pass_the_bound_together(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig(max_items=10)) as bench:
        parks = [bench.service.park([parked(f"{n}-{i}", 5.0) for i in range(4)]) for n in range(5)]
        answers = await asyncio.gather(*parks, return_exceptions=True)
        assert [type(answer) for answer in answers if answer is not None] == [Overloaded] * 3


async def test_bounds_hold_over_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    config = DelayConfig(max_bytes=1000)
    async with opened(tmp_path, clock, config) as bench:
        await bench.service.park([parked(str(index), 600.0, b"x" * 100) for index in range(9)])
    async with opened(tmp_path, clock, config) as bench:
        with pytest.raises(Overloaded, match="max_bytes"):
            await bench.service.park([parked("more", 5.0, b"x" * 200)])


@pytest.mark.parametrize(("delay", "says"), [(31 * 86_400.0, "the longest delay is 30d"), (float("nan"), "not a time")])
async def test_a_delay_beyond_the_bound_is_refused_whole(bench: Bench, delay: float, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        await bench.service.park([parked("fine", 5.0), parked("far", delay)])
    assert sum(depth.items for depth in await bench.service.depth()) == 0


async def test_a_foreign_record_stops_nothing_and_is_kept(bench: Bench) -> None:
    await bench.log.append(rung_stream(1.0), 0, [Record(b"what is this")])
    await bench.service.park([parked("a", 1.0)])
    await bench.run()
    assert [id for id, _ in bench.arrived] == ["a"]
    assert (await bench.log.read(UNREADABLE, 0, 0, 10, 1000)).payloads == [b"what is this"]


async def test_a_later_mover_ends_the_earlier_ones_moves(bench: Bench) -> None:
    await bench.service.park([parked("a", 1.0)])
    later = Mover(bench.log, bench.checkpoints, bench.ownership, bench.config, bench.clock)
    await later.open()
    bench.clock.pass_(1.5)
    with pytest.raises(StaleFence):
        await bench.mover.step(bench.mover._rungs[0])


class RefusingLog(SqliteLog):
    """Refuses some appends the way a full disk does."""

    refusals = 0

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        if self.refusals > 0 and stream.startswith("due."):
            self.refusals -= 1
            raise StoreFull("the disk is full")
        return await super().append(stream, partition, records)


async def test_a_running_mover_outlives_a_full_disk_and_idles(bench: Bench, tmp_path: Path) -> None:
    # Given a mover that runs by itself, on short rungs and the machine's clock
    file = SqliteFile(tmp_path / "own.sqlite", log_sqlite.SCHEMA, name="own")
    await file.open()
    log = RefusingLog(file)
    await log.open()
    config = DelayConfig(rungs=(0.02, 0.1), max_delay=60.0)
    service, mover = DelayService(log, config), Mover(log, bench.checkpoints, bench.ownership, config)
    await mover.start()
    try:
        # When its first appends are refused
        log.refusals = 2
        clock = service._clock
        await service.park([Parked("t", str(n), Kind("f"), b"", clock.wall() + 0.15, clock.wall()) for n in range(50)])
        await log.wait("due.f", {0: 0}, 20.0)
        # Then everything arrives, and nothing is left to say
        assert {bounds.end for bounds in (await log.bounds("due.f")).values()} == {50}
        found = await log.read("due.f", 0, 0, 100, 1 << 20)
        assert all(time >= parked_from(h, b"").due for time, h in zip(found.times, found.headers, strict=True))
    finally:
        await mover.drain(5.0)
        assert mover.why == ""
        await file.close()


class BreakingLog(SqliteLog):
    """Its connection breaks while each idle rung waits for its first item."""

    breaks = 2

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        if self.breaks > 0 and rung_wait(stream) is not None:
            self.breaks -= 1
            raise NotConnected("the connection was reset")
        await super().wait(stream, ends, timeout)


async def test_a_connection_that_breaks_under_an_idle_rung_ends_no_rung(bench: Bench, tmp_path: Path) -> None:
    # Given a mover whose rungs are empty, and whose wait for an item is broken off
    file = SqliteFile(tmp_path / "own.sqlite", log_sqlite.SCHEMA, name="own")
    await file.open()
    log = BreakingLog(file)
    await log.open()
    config = DelayConfig(rungs=(0.02, 0.1), max_delay=60.0)
    service, mover = DelayService(log, config), Mover(log, bench.checkpoints, bench.ownership, config)
    await mover.start()
    try:
        # When items are parked after that
        clock = service._clock
        await service.park([Parked("t", str(n), Kind("f"), b"", clock.wall() + 0.15, clock.wall()) for n in range(5)])
        # Then they come out all the same
        async with asyncio.timeout(20):
            await log.wait("due.f", {0: 0}, 20.0)
        assert log.breaks == 0
        assert {bounds.end for bounds in (await log.bounds("due.f")).values()} == {5}
    finally:
        await mover.drain(5.0)
        await file.close()


async def test_the_service_over_the_wire(bench: Bench) -> None:
    config = DelayConfig(listen="127.0.0.1:0", max_items=3000)
    server = DelayServer(DelayService(bench.log, config, bench.clock), config)
    await server.start()
    try:
        async with DelayClient(server.address) as client:
            items = [parked(str(index), 1.0, b"\xff" * (index % 5)) for index in range(2500)]
            await client.park(items)
            assert {depth.stream: depth.items for depth in await client.depth()}["delay.1s"] == 2500
            with pytest.raises(InvalidRequest, match="longest delay"):
                await client.park([parked("far", 40 * 86_400.0)])
            with pytest.raises(Overloaded, match="max_items") as refused:
                await client.park(items[:600])
            assert refused.value.retry_after == 1.0
            found = await bench.log.read("delay.1s", 0, 0, 1024, 1 << 20)
            assert [parked_from(*p) for p in zip(found.headers, found.payloads, strict=True)] == items[:1024]
    finally:
        await server.drain(1.0)
        await server.stop()


async def test_a_service_that_is_away_for_a_moment_is_called_again(bench: Bench) -> None:
    config = DelayConfig(listen="127.0.0.1:0")
    service = DelayService(bench.log, config, bench.clock)
    first = DelayServer(service, config)
    await first.start()
    address = first.address
    await first.stop()
    async with DelayClient(address) as client:
        parking = asyncio.create_task(client.park([parked("a", 1.0)]))
        second = DelayServer(service, config.model_copy(update={"listen": address}))
        await second.start()
        try:
            await asyncio.wait_for(parking, 20)
        finally:
            await second.stop()
    assert (await bench.log.bounds("delay.1s"))[0].end == 1
