"""Parked items come due alike wherever they wait: in a ladder, in a ladder of parcels, in a queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.queue_mover import LEASE, QUEUE, QueueMover
from tailrace.delay_service.rules.head import LONGEST_TOGETHER
from tailrace.delay_service.service import DelayService
from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded
from tailrace.model.parked import Parked, due_stream, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.clock import ManualClock

NOW = ManualClock().wall()
ROOMY = DelayConfig()


class Ladder:
    """A delay service over embedded stores under a clock that stands still; its moves are made by hand."""

    queue = "none"
    batches = True
    #: Seconds until a move that a crash cut off is made again.
    again = 0.0

    def __init__(self, folder: Path, clock: ManualClock, config: DelayConfig) -> None:
        self.clock, self.config = clock, config
        self.stores = EmbeddedStores(folder, StoresConfig(delay_queue=self.queue), clock)
        self.stores.delay_log.batches = self.batches
        self.arrived: list[tuple[Parked, float]] = []
        self._read = 0

    async def open(self) -> None:
        await self.stores.start()
        log = self.stores.delay_log
        self.service = DelayService(log, self.config, self.clock, self.stores.delay_queue)
        self.mover = Mover(log, self.stores.checkpoints, self.stores.ownership, self.config, self.clock)
        self._rungs = await self.mover.open()

    async def close(self) -> None:
        await self.stores.stop()

    async def move(self) -> float | None:
        """Makes every move that may be made. Returns the seconds until the next may; None: nothing waits."""
        before = [rung.position for rung in self._rungs]
        sleeps = [sleep for rung in self._rungs if (sleep := await self.mover.step(rung)) is not None]
        moved = before != [rung.position for rung in self._rungs]  # maybe to a rung that was looked at before
        return 0.0 if moved else min(sleeps, default=None)

    async def settle(self) -> float | None:
        """Moves all that may move now."""
        while (sleep := await self.move()) == 0.0:
            pass
        found = await self.stores.delay_log.read(due_stream("f"), 0, self._read, 10_000, 1 << 30)
        items = map(parked_from, found.headers, found.payloads)
        self.arrived += [(item, self.clock.wall()) for item in items]
        self._read += len(found.positions)
        return sleep

    async def run(self) -> None:
        """Lets time pass until nothing waits any more."""
        while (sleep := await self.settle()) is not None:
            self.clock.advance(max(LONGEST_TOGETHER, sleep))

    def break_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lets the next moves get as far as the due stream, and then has the process gone."""
        monkeypatch.setattr(self.stores.checkpoints, "commit", gone)


class Parcels(Ladder):
    batches = False


class Queue(Ladder):
    queue = "sqlite"
    again = LEASE + 1.0  # the writer has to be sure, by its real clock, that no renewal waits: 1 ms was too soon

    async def open(self) -> None:
        await super().open()
        assert self.stores.delay_queue is not None
        self._from_queue = QueueMover(self.stores.delay_queue, self.stores.delay_log, self.config, self.clock)

    async def move(self) -> float | None:
        if await self._from_queue.step(look=0.0):
            return 0.0
        assert self.stores.delay_queue is not None
        if not (await self.stores.delay_queue.counts())["new"]:
            return None
        rows = await self.stores._waiting_file.read(  # type: ignore[union-attr]
            lambda connection: connection.execute("SELECT min(next_trigger) FROM tasks WHERE state = 0").fetchone()
        )
        return float(max(0.001, rows[0] / 1e6 - self.clock.wall()))

    def break_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self.stores.delay_queue, "settle", gone)


async def gone(*arguments: object) -> None:
    raise NotConnected("gone")


def parked(id: str, delay: float, payload: bytes = b"x", function: str = "f") -> Parked:
    return Parked("orders", id, Kind(function), payload, NOW + delay, NOW - 10)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class DelayLaws:
    kind: type[Ladder]

    @pytest.fixture
    async def bench(self, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Ladder]:
        bench = await self.opened(tmp_path, clock)
        yield bench
        await bench.close()

    async def opened(self, folder: Path, clock: ManualClock, config: DelayConfig = ROOMY) -> Ladder:
        bench = self.kind(folder, clock, config)
        await bench.open()
        return bench

    async def test_every_item_comes_out_once_never_early_and_within_its_bound(self, bench: Ladder) -> None:
        delays = [0.0, 0.2, 1.0, 4.0, 5.0, 6.1, 60.0, 61.0, 333.3, 4000.0, 86_400.0]
        await bench.service.park([parked(str(index), delay) for index, delay in enumerate(delays)])
        await bench.run()
        assert sorted(int(item.id) for item, _ in bench.arrived) == list(range(len(delays)))
        for item, at in bench.arrived:
            assert 0 <= at - item.due <= max(1.0, 0.05 * (item.due - NOW)) + 0.01
        assert sum(depth.items for depth in await bench.service.depth() if depth.stream != "due.f") == 0

    async def test_what_was_parked_comes_back_whole(self, bench: Ladder) -> None:
        item = Parked(
            *("orders", "orders/0/7", Kind("f", 1, "vip", "acme"), b"\x00\xff", NOW + 7.5, NOW - 3),
            *(4, 1, 2, 1 << 62, "503: é", "customer-1", (("trace", "abc"), ("tailrace-due", "mine"))),
            *(NOW + 99, "half", "3", 7, 2),
        )
        await bench.service.park([item, parked("another", 7.5)])
        await bench.run()
        assert item in [found for found, _ in bench.arrived]
        keys = (await bench.stores.delay_log.read("due.f", 0, 0, 10, 1 << 20)).keys
        assert sorted(keys) == ["", "customer-1"]

    async def test_items_of_one_delay_keep_their_order(self, bench: Ladder) -> None:
        for index in range(50):
            await bench.service.park([parked(f"{index:02}", 5.0 + index * 0.01)])
            bench.clock.advance(0.01)
        await bench.run()
        assert [item.id for item, _ in bench.arrived] == [f"{index:02}" for index in range(50)]

    async def test_a_death_between_two_stores_copies_but_loses_nothing(
        self, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a move that is durable where it goes, and not yet gone where it was
        before = await self.opened(tmp_path, clock)
        await before.service.park([parked(str(index), 1.0) for index in range(10)])
        clock.advance(1.5)
        before.break_off(monkeypatch)
        with pytest.raises(NotConnected):
            await before.move()
        await before.close()
        # When the next process goes on
        clock.advance(before.again)
        after = await self.opened(tmp_path, clock)
        await after.run()
        await after.close()
        # Then it moves them again: each copy has the same number, by which the ledger starts one of them (L16)
        assert sorted(item.id for item, _ in after.arrived) == sorted([str(index) for index in range(10)] * 2)

    async def test_a_restart_goes_on_where_it_was(self, tmp_path: Path, clock: ManualClock) -> None:
        before = await self.opened(tmp_path, clock)
        await before.service.park([parked(str(index), 1.0 + index) for index in range(8)])
        clock.advance(3.2)
        await before.settle()
        early = {item.id for item, _ in before.arrived}
        await before.close()
        clock.advance(86_400.0)  # down for a day
        after = await self.opened(tmp_path, clock)
        await after.settle()
        await after.close()
        assert sorted(item.id for item, _ in after.arrived) == [str(index) for index in range(8)]
        assert early and early < {str(index) for index in range(8)}

    async def test_a_clock_set_back_starts_nothing_early(self, bench: Ladder) -> None:
        await bench.service.park([parked("a", 40.0), parked("b", 3.0)])
        bench.clock.advance(2.0)
        bench.clock.jump(-500.0)
        await bench.run()
        assert len(bench.arrived) == 2
        for item, at in bench.arrived:
            assert 0 <= at - item.due <= 2.01

    async def test_what_is_due_already_waits_by_function(self, bench: Ladder) -> None:
        await bench.service.park([parked("a", -1.0), parked("b", 0.0, function="g")])
        depths = {depth.stream: depth.items for depth in await bench.service.depth() if depth.items}
        assert depths == {"due.f": 1, "due.g": 1}

    async def test_parks_are_refused_when_full_and_moves_are_not(self, tmp_path: Path, clock: ManualClock) -> None:
        config = DelayConfig(max_items=10, max_bytes=1000)
        bench = await self.opened(tmp_path, clock, config)
        await bench.service.park([parked(str(index), 5.0) for index in range(10)])
        await bench.close()
        bench = await self.opened(tmp_path, clock, config)  # the bound holds over a restart
        with pytest.raises(Overloaded, match="max_items"):
            await bench.service.park([parked("one more", 5.0)])
        await bench.run()
        assert len(bench.arrived) == 10
        await bench.stores.delay_log.trim("due.f", 0, 10)  # its tailer has settled them
        clock.advance(1.0)
        await bench.service.park([parked("a", 50.0, b"x" * 900)])
        with pytest.raises(Overloaded, match="max_bytes"):
            await bench.service.park([parked("b", 50.0, b"x" * 200)])
        await bench.close()

    async def test_a_delay_beyond_the_bound_is_refused_whole(self, bench: Ladder) -> None:
        with pytest.raises(InvalidRequest, match="the longest delay is 30d"):
            await bench.service.park([parked("fine", 5.0), parked("far", 31 * 86_400.0)])
        assert sum(depth.items for depth in await bench.service.depth()) == 0

    async def test_a_log_that_is_away_holds_items_back_and_loses_none(
        self, bench: Ladder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await bench.service.park([parked("a", 1.0)])
        bench.clock.advance(2.0)
        with monkeypatch.context() as away:
            away.setattr(bench.stores._delay_file, "write", gone)
            with pytest.raises(NotConnected):
                await bench.move()
        await bench.run()
        assert [item.id for item, _ in bench.arrived] == ["a"]


class TestLadder(DelayLaws):
    kind = Ladder


class TestLadderOfParcels(DelayLaws):
    kind = Parcels


class TestQueue(DelayLaws):
    kind = Queue

    async def test_nothing_is_late_by_a_rung(self, bench: Ladder) -> None:
        await bench.service.park([parked(str(n), delay) for n, delay in enumerate((0.3, 7.7, 86_400.1))])
        assert {depth.stream: depth.items for depth in await bench.service.depth()}[QUEUE] == 3
        await bench.run()
        assert all(0 <= at - item.due < 0.3 for item, at in bench.arrived)

    async def test_a_foreign_row_stops_nothing_and_is_kept(self, bench: Ladder) -> None:
        assert bench.stores.delay_queue is not None
        await bench.stores.delay_queue.submit([NewItem(Kind(QUEUE), b"what is this")])
        await bench.service.park([parked("a", 1.0)])
        await bench.run()
        assert [item.id for item, _ in bench.arrived] == ["a"]
        assert (await bench.stores.delay_log.read("unreadable.delay", 0, 0, 10, 99)).payloads == [b"what is this"]
