"""The whole way of failed stream items, with a crash on each side of every durable write of it: the owner of a stream,
the ledger, the delay service, its mover, and the tailer of due items."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.service import DelayService
from tailrace.model.dead_letter import EVERY, DeadLetter
from tailrace.model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from tailrace.model.parked import Parked, due_stream, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.rules.ledger import CopyVerdict, Find, copy_finds, found
from tailrace.testing.clock import ManualClock
from tailrace.testing.crash_points import explore

SOURCE, DUE, STREAM = "orders", "orders-retries", due_stream("f")
#: How the attempts of each position end, one after the other.
ENDS = (("good",), ("fails", "good"), ("fails", "fails", "good"), ("fails", "fatal"))
DELAY = 1.5
CONFIG = DelayConfig(rungs=(0.5, 1.0), max_delay=60.0)


class FailuresStory:
    """A stream of four items: one is good, two get better, one dies.

    Invariant: a position below the checkpoint is done, dead with a letter, or has a copy in the delay service.
    """

    points = 65

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.good: list[int] = []  # the journal of the functions themselves: what they finished
        self.runs: list[tuple[int, int]] = []
        self._counter = 0

    # What a tailer's process does, from its start.

    async def act(self, stores: EmbeddedStores) -> None:
        self.clock.advance(60.0)  # whatever was leased before is over
        delay = DelayService(stores.delay_log, CONFIG, self.clock)
        mover = Mover(stores.delay_log, stores.checkpoints, stores.ownership, CONFIG, self.clock)
        await self._read_source(stores, delay)
        rungs = await mover.open()
        epoch = await self._take(stores, DUE)
        await stores.checkpoints.open(DUE, epoch)
        while await stores.ledger.counts() or await self._waiting(stores):
            self.clock.advance(0.5)
            for rung in rungs:
                while await mover.step(rung) == 0:
                    pass
            await self._read_due(stores, delay, epoch)
        await stores.ownership.release(DUE, "", epoch)

    async def _take(self, stores: EmbeddedStores, source: str) -> int:
        row = await stores.ownership.read(source, "")
        owner = await stores.ownership.take(source, "", f"process {self._counter}", 36.0, row.version if row else 0)
        assert owner is not None
        return owner.epoch

    async def _read_source(self, stores: EmbeddedStores, delay: DelayService) -> None:
        marks, ledger = stores.checkpoints, stores.ledger
        epoch = await self._take(stores, SOURCE)
        mark = (await marks.open(SOURCE, epoch)).get("", Mark(0))
        rows = {row.position: row for row in await ledger.open(SOURCE, "", epoch)}
        await ledger.passed(SOURCE, "", epoch, mark.position)  # the former owner may have died before it said so
        suspects = [
            LedgerEntry(each, LedgerPlace.SUSPECT) for each in range(mark.position, mark.handed_out) if each not in rows
        ]
        await ledger.write(SOURCE, "", [(None, row) for row in suspects], epoch)
        rows |= {row.position: row for row in suspects}
        await marks.commit(SOURCE, epoch, {"": Mark(mark.position, b"", len(ENDS))})
        for position in range(mark.position, len(ENDS)):
            row = rows.get(position)
            if found(row) in (Find.RUN, Find.ALONE):
                fence = self._fence(epoch, row)
                end = self._run(position, fence, row)
                if end == "fails":
                    first = LedgerEntry(position, LedgerPlace.PARKING, 1, self.clock.wall() + DELAY, 1, fence=fence)
                    assert await ledger.write(SOURCE, "", [(row, first)], epoch) == [first]
                    row = first
            if row is not None and row.place is LedgerPlace.PARKING:
                await self._park(stores, delay, row, epoch)
            await marks.commit(SOURCE, epoch, {"": Mark(position + 1)})
            await ledger.passed(SOURCE, "", epoch, position + 1)
        await stores.ownership.release(SOURCE, "", epoch)

    async def _read_due(self, stores: EmbeddedStores, delay: DelayService, epoch: int) -> None:
        start = (await stores.checkpoints.load(DUE)).get("0", Mark(0)).position
        records = await stores.delay_log.read(STREAM, 0, start, 100, 1 << 20)
        for place, headers, payload in zip(records.positions, records.headers, records.payloads, strict=True):
            await self._copy(stores, delay, parked_from(headers, payload), epoch)
            await stores.checkpoints.commit(DUE, epoch, {"0": Mark(place + 1)})
            await stores.delay_log.trim(STREAM, 0, place + 1)

    async def _copy(self, stores: EmbeddedStores, delay: DelayService, copy: Parked, epoch: int) -> None:
        ledger, position = stores.ledger, copy.position
        row = (await ledger.get(SOURCE, "", [position])).get(position)
        verdict = copy_finds(row, copy.n, epoch)
        if row is None or verdict is CopyVerdict.OVER:
            return
        if verdict is CopyVerdict.APPEND:
            await self._park(stores, delay, row, None)
            return
        assert copy.due <= self.clock.wall(), "a copy came early"
        run = row._replace(place=LedgerPlace.RUNNING, fence=self._fence(epoch, row), epoch=epoch)
        assert await ledger.write(SOURCE, "", [(row, run)], None) == [run]
        end = self._run(position, run.fence, run)
        if end == "fails":
            again = run._replace(place=LedgerPlace.PARKING, n=run.n + 1, attempts=run.attempts + 1)
            again = again._replace(due=self.clock.wall() + DELAY)
            assert await ledger.write(SOURCE, "", [(run, again)], None) == [again]
            await self._park(stores, delay, again, None)
        elif end == "fatal":
            letter = DeadLetter(str(position), SOURCE, Kind("f"), b"", "fatal", "", run.attempts + 1, 0, 0.0, 0.0)
            await stores.dead_letters.add([letter])
            await ledger.write(SOURCE, "", [(run, run._replace(place=LedgerPlace.DEAD))], None)
        else:
            await ledger.write(SOURCE, "", [(run, run._replace(place=LedgerPlace.DONE))], None)

    async def _park(self, stores: EmbeddedStores, delay: DelayService, row: LedgerEntry, epoch: int | None) -> None:
        item = Parked(SOURCE, str(row.position), Kind("f"), b"x", row.due, 0.0, position=row.position, n=row.n)
        await delay.park([item])
        parked = row._replace(place=LedgerPlace.PARKED)
        assert await stores.ledger.write(SOURCE, "", [(row, parked)], epoch) == [parked]

    def _fence(self, epoch: int, row: LedgerEntry | None) -> int:
        self._counter += 1
        return max((epoch << 32) + self._counter, row.fence + 1 if row else 0)

    def _run(self, position: int, fence: int, row: LedgerEntry | None) -> str:
        """Runs the function itself: it knows nothing but its journal, and how often it was told that it failed."""
        assert row is None or row.place in (LedgerPlace.SUSPECT, LedgerPlace.RUNNING), "run while it is elsewhere"
        assert all(fence > former for own, former in self.runs if own == position), "a fence went back"
        self.runs.append((position, fence))
        end = ENDS[position][row.attempts if row else 0]
        if end == "good":
            self.good.append(position)
        return end

    # What holds.

    async def check(self, stores: EmbeddedStores) -> None:
        passed = (await stores.checkpoints.load(SOURCE)).get("", Mark(0)).position
        rows = {row.entry.position: row.entry for row in await stores.ledger.list(SOURCE, 100)}
        letters = {int(letter.id) for letter in await stores.dead_letters.list(EVERY, 100)}
        copies = {(item.position, item.n) for item in await self._waiting(stores)}
        for position in range(passed):
            row = rows.get(position)
            assert position in self.good or position in letters or row is not None, f"{position} is lost"
            if row is not None and row.place not in TERMINAL | {LedgerPlace.SUSPECT}:
                assert copies & {(position, row.n), (position, row.n - 1)}, f"{position} has a row and no copy"
        assert all(row.position >= passed for row in rows.values() if row.place in TERMINAL), "a row is left over"

    async def _waiting(self, stores: EmbeddedStores) -> list[Parked]:
        """Copies that rest in the delay service and that no checkpoint has passed."""
        marks = {
            stream: mark.position
            for source in ("@delay", DUE)
            for stream, mark in (await stores.checkpoints.load(source)).items()
        }
        found: list[Parked] = []
        for stream in await stores.delay_log.streams():
            start = marks.get("0" if stream == STREAM else stream, 0)
            records = await stores.delay_log.read(stream, 0, start, 100, 1 << 20)
            found += [parked_from(*each) for each in zip(records.headers, records.payloads, strict=True)]
        return found

    async def end(self, stores: EmbeddedStores) -> None:
        letters = {int(letter.id) for letter in await stores.dead_letters.list(EVERY, 100)}
        assert letters == {3}
        assert set(self.good) == {0, 1, 2}
        # One crash may take one outcome with it, and so cost one run.
        assert len(self.runs) - sum(map(len, ENDS)) in (0, 1)
        assert await stores.ledger.counts() == {}
        assert await self._waiting(stores) == []


@pytest.mark.timeout(600)  # a hundred restarts of the whole flow
async def test_failed_items_go_their_whole_way_through_a_crash_at_any_point(tmp_path: Path) -> None:
    points = await explore(FailuresStory, tmp_path)
    assert len(points) == FailuresStory.points, [str(point) for point in points]
    # Given the same items without a crash, each is run exactly as often as it takes, and every store had its points.
    assert {point.file for point in points} == {"state", "delay"}


@pytest.mark.long(minutes=1.7)  # thousands of restarts
async def test_failed_items_go_their_whole_way_through_two_crashes_at_any_points(tmp_path: Path) -> None:
    await explore(FailuresStory, tmp_path, again=3)
