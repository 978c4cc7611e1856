"""Parking and moving over the real embedded log and checkpoints, under a clock that the tests set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.records import UNREADABLE, rung_stream, rung_wait
from tailrace.delay_service.rules.head import LONGEST_TOGETHER
from tailrace.delay_service.service import DelayServer, DelayService
from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded, StaleFence, StoreFull
from tailrace.model.parked import Parked, due_stream, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints import sqlite as checkpoints_sqlite
from tailrace.stores.checkpoints.sqlite import SqliteCheckpoints
from tailrace.stores.log import sqlite as log_sqlite
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SqliteLog
from tailrace.stores.ownership import sqlite as ownership_sqlite
from tailrace.stores.ownership.sqlite import SqliteOwnership
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.wire.delay import DelayClient

NOW = 1_700_000_000.0


class FakeClock:
    """A clock whose both times move by `pass_` alone; `set_wall` steps the wall clock alone."""

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
        """Steps every rung until none can move. Returns the seconds until the next may."""
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


class DearLog(SqliteLog):
    """A log on which each record is dear, as on Kafka: rungs get parcels."""

    batches = False


@asynccontextmanager
async def opened(
    folder: Path, clock: FakeClock, config: DelayConfig, log_of: type[SqliteLog] = SqliteLog
) -> AsyncIterator[Bench]:
    log_file = SqliteFile(folder / "log.sqlite", log_sqlite.SCHEMA, name="log")
    schema = checkpoints_sqlite.SCHEMA + ownership_sqlite.SCHEMA
    state = SqliteFile(folder / "state.sqlite", schema, name="state")
    await log_file.open()
    await state.open()
    try:
        log = log_of(log_file, clock)
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


@pytest.fixture
async def dear(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Bench]:
    async with opened(tmp_path, clock, DelayConfig(max_items=600), DearLog) as running:
        yield running


async def test_items_travel_in_parcels_where_records_are_dear(dear: Bench) -> None:
    # Given three parks, of which the last is in part for other rungs
    for first in range(0, 300, 100):
        await dear.service.park([parked(str(n), 300.0 if n % 3 else 6.0 + n % 2) for n in range(first, first + 100)])
    # Then a rung has a record for each park, and its items are counted all the same
    assert (await dear.log.bounds("delay.5m"))[0].end == 3
    assert sum(depth.items for depth in await dear.service.depth()) == 300
    with pytest.raises(Overloaded, match="max_items"):
        await dear.service.park([parked(str(n), 6.0) for n in range(301)])
    # And each comes out once, in its time, as a record of its own
    await dear.run()
    left = dict(dear.arrived)
    assert len(left) == len(dear.arrived) == (await dear.log.bounds("due.f"))[0].end == 300
    for n in range(300):
        delay = 300.0 if n % 3 else 6.0 + n % 2
        assert 0 <= left[str(n)] - NOW - delay <= max(1.0, 0.05 * delay) + 0.01
    assert [depth.items for depth in await dear.service.depth() if depth.wait] == [0] * 7


async def test_a_rung_is_trimmed_when_it_rests_and_after_much(bench: Bench) -> None:
    # Given a rung with five batches that may all move
    config = bench.config.model_copy(update={"batch_items": 10, "max_items": 480})
    service, mover = (
        DelayService(bench.log, config, bench.clock),
        Mover(bench.log, bench.checkpoints, bench.ownership, config, bench.clock),
    )
    rung = (await mover.open())[0]
    await service.park([parked(str(n), 1.0) for n in range(50)])
    bench.clock.pass_(1.5)
    # When it moves on, batch by batch
    starts = []
    while await mover.step(rung) is not None:
        starts.append((await bench.log.bounds("delay.1s"))[0].start)
    # Then it was trimmed after a sixteenth of what may be held, and when nothing was left
    assert starts == [0, 0, 30, 30, 30]
    assert (await bench.log.bounds("delay.1s"))[0].start == 50


async def test_a_rung_that_is_no_longer_configured_is_emptied(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock, DelayConfig(rungs=(1.0, 45.0), max_delay=3600.0)) as before:
        await before.service.park([parked("a", 45.0)])
        assert [depth.items for depth in await before.service.depth()] == [0, 1]
    async with opened(tmp_path, clock, DelayConfig(rungs=(1.0, 5.0, 600_000.0))) as after:
        await after.run()
        assert [id for id, _ in after.arrived] == ["a"]
        assert after.arrived[0][1] >= NOW + 45.0


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


async def test_who_is_deposed_trims_nothing_either(bench: Bench) -> None:
    """Items that it moved may be there again: a store that was put back deposes the mover that had a turn before."""
    # Given a rung that moved an item, and did not forget it yet
    await bench.service.park([parked("a", 1.0)])
    bench.clock.pass_(1.5)
    rung = bench.mover._rungs[0]
    await rung.move()
    rung.position = 1
    # When another one takes over that knows nothing of it
    later = Mover(bench.log, bench.checkpoints, bench.ownership, bench.config, bench.clock)
    (same, *_) = await later.open()
    assert (same.stream, same.position) == (rung.stream, 0)
    # Then the former one is refused before it trims
    with pytest.raises(StaleFence):
        await bench.mover.step(rung)
    assert (await bench.log.bounds(rung.stream))[0].start == 0


class RefusingLog(SqliteLog):
    """A log that refuses some appends, as a full disk does."""

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
        # Then everything arrives, in one append or several, and nothing is left to say
        found = await log.read("due.f", 0, 0, 100, 1 << 20)
        async with asyncio.timeout(20):
            while len(found.payloads) < 50:
                await log.wait("due.f", {0: len(found.payloads)}, 20.0)
                found = await log.read("due.f", 0, 0, 100, 1 << 20)
        assert {bounds.end for bounds in (await log.bounds("due.f")).values()} == {50}
        assert all(time >= parked_from(h, b"").due for time, h in zip(found.times, found.headers, strict=True))
    finally:
        await mover.drain(5.0)
        assert mover.why == ""
        await file.close()


class BreakingLog(SqliteLog):
    """A log whose connection breaks while each idle rung waits for its first item."""

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
