"""The whole way of a replay, from the order to the end, with a crash on each side of every durable write of it: the
gateway that writes its row, and the process that answers it, reads its source, and tells how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.model.audit import Fate
from tailrace.model.lease import LeaseSizes
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.replay import OVER, Bound, Replay, ReplayOrder, ReplayState, asked_for
from tailrace.model.seek import END
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.registry import Environment, kind_of
from tailrace.tailers.replay import supervisor
from tailrace.tailers.replay.plan import reader_of
from tailrace.tailers.replay.source import ReplaySource
from tailrace.tailers.replay.supervisor import ReplaySupervisor
from tailrace.tailers.resources import Resources
from tailrace.tailers.rules.audit_book import Book
from tailrace.testing.clock import ManualClock
from tailrace.testing.crash_points import explore

LIVE = TailerConfig.model_validate({"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f"})
ITEMS, FIRST, FAILS = 6, 2, 4
SIZES = LeaseSizes()


class StoryTailer:
    """A replay's tailer without a scheduler: it runs what it reads at once, and writes what a real one would write, in
    the same order. The item FAILS is parked; the rest succeeds."""

    busy = False

    def __init__(self, story: ReplayStory, replay: Replay, environment: Environment) -> None:
        self._story, self._replay, self._stores = story, replay, environment
        reader = reader_of(kind_of("log"), LIVE, environment)
        self._source = ReplaySource(reader, replay, environment.clock)
        self._epoch = 0
        self._paused = False
        self.settled = False

    async def start(self) -> None:
        pass

    def look(self) -> None:
        pass

    def try_again(self, after: float) -> None:
        pass

    def hold(self, paused: bool) -> None:
        self._paused = paused

    @property
    def owns(self) -> bool:
        return bool(self._epoch)

    async def turn(self) -> None:
        """Takes the row, and reads one item."""
        stores, name = self._stores, self._replay.name
        if not self._epoch:
            row = await stores.ownership.read(name, "")
            owner = await stores.ownership.take(name, "", "the story", SIZES.source, row.version if row else 0)
            assert owner is not None
            self._epoch = owner.epoch
            mark = (await stores.checkpoints.open(name, owner.epoch)).get("0")
            if mark is None:
                mark = Mark(FIRST)
                await stores.checkpoints.commit(name, owner.epoch, {"0": mark})
            self._book = Book(mark.position, mark.book or b"")
            self._rows = {row.position: row for row in await stores.ledger.open(name, "0", owner.epoch)}
            await self._source.open({"0": mark.position})
        if self._paused or self._source.over:
            self.settled = self._source.over
            return
        [batch] = await self._source.read(1, 1 << 20, 0.0)
        [position] = batch.positions
        fate = Fate.SUCCEEDED
        if position == FAILS:
            await self._park(position)
            fate = Fate.DELAYED
        else:
            self._story.ran.append(position)
        self._book.read([position])
        self._book.settle([position], fate)
        self._book.passed(position + 1)
        await stores.checkpoints.commit(name, self._epoch, {"0": Mark(position + 1, b"", 0, self._book.encode())})
        await stores.ledger.passed(name, "0", self._epoch, position + 1)

    async def _park(self, position: int) -> None:
        row = self._rows.get(position)
        if row is None:
            row = LedgerEntry(
                position, LedgerPlace.PARKING, 1, self._stores.clock.wall() + 1.0, 1, fence=(self._epoch << 32) + 1
            )
            await self._stores.ledger.write(self._replay.name, "0", [(None, row)], self._epoch)
        if row.place is LedgerPlace.PARKING:
            parked = row._replace(place=LedgerPlace.PARKED)
            await self._stores.ledger.write(self._replay.name, "0", [(row, parked)], self._epoch)

    async def drain(self, timeout: float) -> None:
        pass

    async def stop(self) -> None:
        await self._source.close()
        if self._epoch:
            await self._stores.ownership.release(self._replay.name, "", self._epoch)


class ReplayStory:
    """Positions from FIRST on run again, each at least once and none below; the live checkpoint stays where it is."""

    cancelled = False

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ran: list[int] = []
        self.told: ReplayState | None = None  # the last state that anybody was told of

    async def act(self, stores: EmbeddedStores) -> None:
        self.clock.advance(40.0)  # whatever was leased before is over, and an order still holds
        await self._live(stores)
        going = ReplaySupervisor(
            stores.replays, {"t": LIVE}, Resources(tailers_environment(stores, self.clock), "", None, SIZES)
        )  # type: ignore[arg-type]
        if not await stores.replays.list(1):
            order = ReplayOrder("t", Bound(FIRST), Bound(edge=END), who="ann@host")
            await stores.replays.add(asked_for(order, self.clock.wall()))
        for _ in range(100):
            self.clock.advance(1.0)  # a row that nobody left empty is free after its lease
            await going._read_rows()
            for run in list(going._runs.values()):
                if isinstance(run.tailer, StoryTailer):
                    await run.tailer.turn()
                await going._look(run)
            (replay,) = await stores.replays.list(1)
            self.told = replay.state
            if replay.state in OVER:
                return
            if self.cancelled and self.ran[-1:] == [FAILS + 1] and replay.state is ReplayState.RUNNING:
                await stores.replays.move(replay.number, ReplayState.CANCELLING, self.clock.wall(), {})
            elif replay.state is ReplayState.RETRYING:
                await self._retry(stores, replay.name)
        raise AssertionError(f"it does not end: {replay}")

    async def _live(self, stores: EmbeddedStores) -> None:
        """Has the live tailer be done with everything."""
        bounds = await stores.log.bounds("s")
        if not bounds or not bounds[0].end:
            await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(ITEMS)])
        if (await stores.checkpoints.load("t")).get("0", Mark(0)).position < ITEMS:
            await stores.checkpoints.open("t", 1)
            await stores.checkpoints.commit("t", 1, {"0": Mark(ITEMS)})

    async def _retry(self, stores: EmbeddedStores, name: str) -> None:
        """Lets parked items come due, and get better."""
        for partition, row in await stores.ledger.list(name, 10):
            if row.place is LedgerPlace.PARKED:
                run = row._replace(place=LedgerPlace.RUNNING, fence=row.fence + 1, epoch=1)
                await stores.ledger.write(name, partition, [(row, run)], None)
                row = run
            if row.place is LedgerPlace.RUNNING:
                if FAILS not in self.ran:
                    self.ran.append(FAILS)
                await stores.ledger.write(name, partition, [(row, row._replace(place=LedgerPlace.DONE))], None)

    async def check(self, stores: EmbeddedStores) -> None:
        assert set(self.ran) <= set(range(FIRST, ITEMS)), "what was not asked for ran"
        live = (await stores.checkpoints.load("t")).get("0")
        assert live is None or live.position in (0, ITEMS)
        replays = await stores.replays.list(9)
        assert len(replays) <= 1, "one order began two replays"
        for replay in replays:
            passed = (await stores.checkpoints.load(replay.name)).get("0", Mark(FIRST)).position
            rows = {row.entry.position for row in await stores.ledger.list(replay.name, 9)}
            for position in range(FIRST, passed):
                given_up = replay.state in OVER or replay.state is ReplayState.CANCELLING
                assert position in self.ran or position in rows or given_up, f"{position} is lost"
            if self.told in OVER:
                assert replay.state is self.told, "what was over goes on"

    async def end(self, stores: EmbeddedStores) -> None:
        (replay,) = await stores.replays.list(9)
        if replay.state is ReplayState.REFUSED:  # two crashes took longer than an order holds
            assert self.ran == []
            return
        assert replay.state is ReplayState.DONE
        assert set(self.ran) == set(range(FIRST, ITEMS))
        assert replay.counts == {"succeeded": ITEMS - FIRST - 1, "done after a delay": 1}
        assert await stores.checkpoints.load(replay.name) == {}
        row = await stores.ownership.read(replay.name, "")
        assert row is not None and not row.holder


class CancelledStory(ReplayStory):
    """A replay that is cancelled while one of its items waits for a retry."""

    cancelled = True

    async def end(self, stores: EmbeddedStores) -> None:
        (replay,) = await stores.replays.list(9)
        refused = replay.state is ReplayState.REFUSED and self.ran == []  # two crashes took longer than an order holds
        assert (
            refused or replay.state is ReplayState.CANCELLED or (replay.state is ReplayState.DONE and FAILS in self.ran)
        )
        assert [row for row in await stores.ledger.list(replay.name, 9) if row.entry.place is LedgerPlace.PARKED] == []
        assert await stores.checkpoints.load(replay.name) == {}


STORIES = pytest.mark.parametrize(("story", "count"), [(ReplayStory, 26), (CancelledStory, 25)])


@pytest.fixture(autouse=True)
def story_tailers(monkeypatch: pytest.MonkeyPatch) -> list[ReplayStory]:
    """Stories that are told: a tailer of the last one stands in for each that is made."""
    telling: list[ReplayStory] = []

    def made(replay: Replay, config: TailerConfig, resources: Resources) -> StoryTailer:
        return StoryTailer(telling[-1], replay, resources.environment)

    monkeypatch.setattr(supervisor, "ReplayTailer", made)
    return telling


@STORIES
async def test_a_replay_goes_its_whole_way_through_a_crash_at_any_point(
    story: type[ReplayStory], count: int, tmp_path: Path, story_tailers: list[ReplayStory]
) -> None:
    def make() -> ReplayStory:
        story_tailers.append(story())
        return story_tailers[-1]

    points = await explore(make, tmp_path)
    assert len(points) == count, [str(point) for point in points]


@pytest.mark.long(minutes=1)
@STORIES
async def test_a_replay_goes_its_whole_way_through_two_crashes(
    story: type[ReplayStory], count: int, tmp_path: Path, story_tailers: list[ReplayStory]
) -> None:
    def make() -> ReplayStory:
        story_tailers.append(story())
        return story_tailers[-1]

    await explore(make, tmp_path, again=2)
