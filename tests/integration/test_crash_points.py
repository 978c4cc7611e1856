"""Every durable write of every embedded store, and of the flows over them: a crash before it and one after it.

Each story says how many points it has, and together they pass every method that writes: a new durable write is
noticed here.
"""

from __future__ import annotations

import ast
import dataclasses
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.sdk.model.claim import Settle, State
from tailrace.sdk.model.dead_letter import EVERY, DeadLetter, Moved, Past
from tailrace.sdk.model.demand import Cell, Demand
from tailrace.sdk.model.drop import Cause, Drop
from tailrace.sdk.model.function_spec import FunctionSpec
from tailrace.sdk.model.ledger import NOT_YET, Entry, Place
from tailrace.sdk.model.limits import Gate, Quota
from tailrace.sdk.model.replay import Bound, ReplayOrder, Stretch, asked_for
from tailrace.sdk.model.replay import State as Going
from tailrace.sdk.model.schedule import Firing, Schedule, ScheduleRow
from tailrace.sdk.model.segment import Segment
from tailrace.sdk.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.inventory.inventory import Entry as Seen
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.clock import ManualClock
from tailrace.testing.crash_points import explore, passed

DEMAND = Demand({Cell("f", 2): 10}, frozenset(), 10)
LEASE = 30.0


class QueueStory:
    """Items submitted, cancelled, leased, renewed, settled in each way and forgotten."""

    points = 12

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ids: dict[str, str] = {}
        self.fences: dict[str, int] = {}
        self.ended: dict[str, State] = {}

    async def act(self, stores: EmbeddedStores) -> None:
        queue = stores.queue
        for name in ("good", "retried", "bad", "stopped"):
            if name not in self.ids:  # asked again with its dedupe key when no answer came
                (answer,) = await queue.submit([NewItem(Kind("f", 2), name.encode(), dedupe_key=name)])
                self.ids[name] = answer.id
        if "stopped" not in self.ended:
            await queue.cancel([self.ids["stopped"]])
            self.ended["stopped"] = State.CANCELLED
        while await self._left(stores):
            await self._round(stores)
        await self._look_up(stores)
        self.clock.advance(30 * 86_400)
        while await queue.sweep():
            pass

    async def _left(self, stores: EmbeddedStores) -> bool:
        found = await stores.queue.status([*self.ids.values()])
        return any(each is not None and not each.ended_at for each in found)

    async def _look_up(self, stores: EmbeddedStores) -> None:
        """What ended without an answer is told here, before it is forgotten."""
        for name, status in zip(self.ids, await stores.queue.status([*self.ids.values()]), strict=True):
            if status is not None:
                assert status.state is self.ended.setdefault(name, status.state)

    async def _round(self, stores: EmbeddedStores) -> None:
        queue, names = stores.queue, {id: name for name, id in self.ids.items()}
        leased = await queue.lease(DEMAND, LEASE, 0)
        if leased is None:
            self.clock.advance(LEASE + 1)  # whoever had it died with the process, or it is not due yet
            return
        ends: dict[str, State] = {}
        others: list[Settle] = []
        for id, attempts in zip(leased.ids, leased.attempts, strict=True):
            name = names[id]
            assert name not in self.ended, "settled, and handed out again"
            assert leased.fence > self.fences.get(name, 0), "a fence went back"
            self.fences[name] = leased.fence
            if name == "bad":
                others.append(Settle(id, leased.fence, State.FATAL_FAILURE))
                ends[name] = State.FATAL_FAILURE
            elif name == "retried" and attempts < 2:
                others.append(Settle(id, leased.fence, State.RETRIABLE_FAILURE, 5.0, 1))
            else:
                ends[name] = State.SUCCESS
        await queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)
        succeeded = [self.ids[name] for name, state in ends.items() if state is State.SUCCESS]
        assert await queue.settle(leased.fence, succeeded, others) == []
        self.ended |= ends

    async def check(self, stores: EmbeddedStores) -> None:
        found = await stores.queue.status([*self.ids.values()])
        for name, status in zip(self.ids, found, strict=True):
            if name in self.ended:
                assert status is None or status.state is self.ended[name]
            else:
                assert status is not None, f"{name} was accepted and is gone"
        counts = await stores.queue.counts()
        assert sum(counts.values()) <= 4, "submitted twice"

    async def end(self, stores: EmbeddedStores) -> None:
        assert not any((await stores.queue.counts()).values())


class EnqueueStory:
    """Rows that another process left in the queue's file become items, which end."""

    points = 3

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.left = 0
        self.ended: list[bytes] = []

    async def act(self, stores: EmbeddedStores) -> None:
        if not self.left:
            connection = sqlite3.connect(stores.data_dir.path / "queue.db")
            for number in range(3):
                tailrace.enqueue(connection, "f", arguments={"n": number})
            connection.commit()
            connection.close()
            self.left = 3
        await stores.queue.sweep()
        while (await self._counts(stores))[0] < 3:
            leased = await stores.queue.lease(DEMAND, LEASE, 0)
            if leased is None:
                self.clock.advance(LEASE + 1)
                continue
            assert not set(leased.payloads) & set(self.ended), "settled, and handed out again"
            assert await stores.queue.settle(leased.fence, leased.ids, []) == []
            self.ended += leased.payloads

    async def _counts(self, stores: EmbeddedStores) -> tuple[int, int]:
        """Items that succeeded, and all of them."""
        counts = await stores.queue.counts()
        return counts["success"], sum(counts.values())

    async def check(self, stores: EmbeddedStores) -> None:
        connection = sqlite3.connect(stores.data_dir.path / "queue.db")
        [(rows,)] = connection.execute("SELECT count(*) FROM tailrace_outbox").fetchall()
        connection.close()
        assert rows + (await self._counts(stores))[1] == self.left, "lost, or there twice"

    async def end(self, stores: EmbeddedStores) -> None:
        assert await self._counts(stores) == (3, 3)


class LogStory:
    """Records appended to two partitions and trimmed."""

    points = 6

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: dict[int, bytes] = {}
        self.asked = 0
        self.trimmed = 0

    async def act(self, stores: EmbeddedStores) -> None:
        log = stores.log
        await log.create("s", 2)
        while len(self.told) < 8:
            self.asked += 2
            payloads = [b"%d" % (len(self.told) + number) for number in range(2)]
            first = await log.append("s", 1, [Record(each) for each in payloads])
            assert first >= max(self.told, default=-1) + 1, "a position was given twice"
            self.told |= dict(enumerate(payloads, first))
        self.trimmed = sorted(self.told)[4]
        await log.trim("s", 1, self.trimmed)

    async def check(self, stores: EmbeddedStores) -> None:
        found = await stores.log.read("s", 1, 0, 100, 1 << 20)
        there = dict(zip(found.positions, found.payloads, strict=True))
        assert len(there) <= self.asked, "more than was ever asked for"
        for position, payload in self.told.items():
            assert there.get(position, None if position < self.trimmed else b"?") in (payload, None)

    async def end(self, stores: EmbeddedStores) -> None:
        assert (await stores.log.bounds("s"))[1].start == self.trimmed


#: A step and what the store holds after it.
Step = tuple[Callable[[], Awaitable[object]], Any]


class RowsStory:
    """Rows that are written step by step: after a crash there is what the last answered step left, or what the one
    without an answer leaves, whole."""

    def __init__(self, empty: Any = None) -> None:
        self.clock = ManualClock()
        self._done = 0
        self._empty = empty

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        raise NotImplementedError

    async def holds(self, stores: EmbeddedStores) -> Any:
        raise NotImplementedError

    async def act(self, stores: EmbeddedStores) -> None:
        for do, after in self.steps(stores)[self._done :]:
            await do()
            assert await self.holds(stores) == after
            self._done += 1

    async def check(self, stores: EmbeddedStores) -> None:
        states = [self._empty, *(after for _, after in self.steps(stores))]
        assert await self.holds(stores) in states[self._done : self._done + 2]

    async def end(self, stores: EmbeddedStores) -> None:
        assert self._done == len(self.steps(stores))


class ControlStory(RowsStory):
    points = 4

    def __init__(self) -> None:
        super().__init__(([], [], []))

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        control, gate, quota, spec = stores.control, Gate("f", "c", "pause"), Quota("f", 3, 2.5), FunctionSpec("f")
        return [
            (lambda: control.put_gate(gate), ([gate], [], [])),
            (lambda: control.put_quota(quota), ([gate], [quota], [])),
            (lambda: control.register([spec]), ([gate], [quota], [spec])),
            (lambda: control.put_gate(dataclasses.replace(gate, action="resume")), ([], [quota], [spec])),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        found = await stores.control.snapshot()
        return [dataclasses.replace(gate, since=0.0) for gate in found.gates], found.quotas, found.functions


class InventoryStory(RowsStory):
    points = 4

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        inventory = stores.inventory
        return [
            (lambda: inventory.offer("s", [Seen("a", "1"), Seen("b", "1")]), ["a", "b"]),
            (lambda: inventory.offer("s", [Seen("b", "1"), Seen("c", "1")]), ["a", "b", "c"]),
            (lambda: inventory.raise_floor("s", 1, 1), ["b", "c"]),
            (lambda: inventory.forget("s"), []),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return (await stores.inventory.read("s", 0, 10)).names


class SegmentsStory(RowsStory):
    points = 3

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        segments = stores.segments
        return [
            (lambda: segments.append("s", [Segment(0, 2, 0), Segment(2, 1, 1)]), [0, 2]),
            (lambda: segments.append("s", [Segment(3, 1, 1)]), [0, 2, 3]),
            (lambda: segments.trim("s", 3), [3]),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return [segment.first for segment in await stores.segments.read("s", 0, 10)]


class ResultsStory(RowsStory):
    points = 2

    def __init__(self) -> None:
        super().__init__([None, None])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        results = stores.results
        return [
            (lambda: results.put({"a": b"1"}), [b"1", None]),
            (lambda: results.put({"a": b"2", "b": b"3"}), [b"2", b"3"]),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return [await stores.results.get(id) for id in "ab"]


class LettersStory(RowsStory):
    """Two letters, one of which is redriven and one purged."""

    points = 4

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        letters = [DeadLetter(id, "t", Kind("f"), b"x", "fatal", "boom", 1, 0, 1.0, 2.0) for id in "ab"]
        dead = stores.dead_letters

        async def numbers(id: str) -> list[int]:
            return [each.number for each in await dead.list(EVERY, 10) if each.id == id]

        async def mark() -> None:
            await dead.mark(await numbers("a"), True)

        async def moved() -> None:
            past = Past("t", "a", 1.0, 1)
            await dead.moved([Moved(number, "task", past) for number in await numbers("a")], self.clock.wall())

        async def remove() -> None:
            await dead.remove(await numbers("b"))

        return [
            (lambda: dead.add(letters), [("a", False), ("b", False)]),
            (mark, [("a", True), ("b", False)]),
            (moved, [("b", False)]),
            (remove, []),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        moving = {each.id for each in await stores.dead_letters.list(dataclasses.replace(EVERY, moving=True), 10)}
        return [(each.id, each.id in moving) for each in await stores.dead_letters.list(EVERY, 10)]


class DropsStory(RowsStory):
    points = 2

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        first, second = Drop(1, 3, 3, Cause.ABSENT), Drop(4, 9, 6, Cause.ABSENT)
        return [
            (lambda: stores.drops.add("s", "", [first], 0), [first]),
            (lambda: stores.drops.add("s", "", [second], 0), [Drop(1, 9, 9, Cause.ABSENT)]),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return await stores.drops.within("s", "", 0, 100)


class StreamRowsStory(RowsStory):
    """Checkpoint and ledger of one owner: noted epochs, marks, rows from their first write to their removal, and a
    checkpoint that nobody needs any more."""

    points = 10

    def __init__(self) -> None:
        super().__init__(({}, []))

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        marks, ledger = stores.checkpoints, stores.ledger
        parking = Entry(4, Place.PARKING, 1, 0.1 + 0.2)
        parked, suspect = parking._replace(place=Place.PARKED), Entry(9, Place.SUSPECT)
        run = parked._replace(place=Place.RUNNING, fence=9, epoch=3)
        done = run._replace(place=Place.DONE)
        away = Entry(5, Place.PARKING, 1, NOT_YET)  # runs, and its frontier passes it
        mark = {"": Mark(6, b"x", 12)}
        first = [(None, parking), (None, away), (None, suspect)]
        return [
            (lambda: marks.open("s", 5), ({}, [])),
            (lambda: ledger.open("s", "", 5), ({}, [])),
            (lambda: ledger.write("s", "", first, 5), ({}, [parking, away, suspect])),
            (lambda: ledger.write("s", "", [(parking, parked)], 5), ({}, [parked, away, suspect])),
            (lambda: marks.commit("s", 5, mark), (mark, [parked, away, suspect])),
            (lambda: ledger.write("s", "", [(parked, run)], None), (mark, [run, away, suspect])),
            (lambda: ledger.write("s", "", [(run, done)], None), (mark, [done, away, suspect])),
            (lambda: ledger.passed("s", "", 5, 6), (mark, [away, suspect])),
            (lambda: ledger.write("s", "", [(away, away._replace(place=Place.DONE))], 5), (mark, [suspect])),
            (lambda: marks.forget("s"), ({}, [suspect])),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return await stores.checkpoints.load("s"), [each.entry for each in await stores.ledger.list("s", 10)]


class ReplaysStory(RowsStory):
    """A replay from its beginning to its end. One that was asked for without an answer stays beside it, and is seen."""

    points = 4

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        asked = asked_for(ReplayOrder("orders", Bound(3), Bound(9)), 1.0)

        async def answer() -> None:
            (newest,) = await stores.replays.list(1)
            stretches = (Stretch("0", 3, 9, ((3, 8),), 6),)
            await stores.replays.answer(dataclasses.replace(newest, state=Going.RUNNING, stretches=stretches))

        async def move(state: Going, **counts: int) -> None:
            (newest,) = await stores.replays.list(1)
            await stores.replays.move(newest.number, state, self.clock.wall(), counts)

        return [
            (lambda: stores.replays.add(asked), ["asked", {}]),
            (answer, ["running", {}]),
            (lambda: move(Going.RETRYING), ["retrying", {}]),
            (lambda: move(Going.DONE, succeeded=6), ["done", {"succeeded": 6}]),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return [what for each in await stores.replays.list(1) for what in (each.state, each.counts)]


class SchedulesStory(RowsStory):
    """A schedule from its making to its end, with a run that it fired and one by hand."""

    points = 5

    def __init__(self) -> None:
        super().__init__(([], []))

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        made = ScheduleRow(Schedule("nightly", "f", every=60.0), next_at=60.0)
        once = Firing((60.0,), 60.0, 0, 120.0)

        async def fire() -> None:
            (row,) = await stores.schedules.list(1)
            await stores.schedules.fire("nightly", row.version, made.decided, once, 61.0)

        return [
            (lambda: stores.schedules.put(made, 0), ([(0.0, 0, 60.0)], [])),
            (fire, ([(60.0, 1, 120.0)], [60.0])),
            (lambda: stores.schedules.run("nightly", 75.0, 75.0), ([(60.0, 1, 120.0)], [75.0, 60.0])),
            (lambda: stores.schedules.trim(1, 100.0), ([(60.0, 1, 120.0)], [75.0])),
            (lambda: stores.schedules.remove("nightly"), ([], [75.0])),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        rows = [(row.decided, row.runs, row.next_at) for row in await stores.schedules.list(10)]
        return rows, [run.instant for run in await stores.schedules.last("nightly", 10)]


class OwnershipStory:
    """Owners that take, renew and release, and after a crash take again."""

    points = 6

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.epoch = 0
        self.version = 0
        self.rounds = 0

    async def act(self, stores: EmbeddedStores) -> None:
        ownership = stores.ownership
        while self.rounds < 2:
            row = await ownership.read("s", "")
            taken = await ownership.take("s", "", f"owner {self.rounds}", 36, row.version if row else 0)
            assert taken is not None
            assert taken.epoch > self.epoch
            assert taken.version > self.version
            self.epoch, self.version = taken.epoch, taken.version
            row = await ownership.renew("s", "", self.epoch, ["x", "y"])
            assert row.version > self.version
            self.version = row.version
            await ownership.release("s", "", self.epoch)
            self.rounds += 1

    async def check(self, stores: EmbeddedStores) -> None:
        row = await stores.ownership.read("s", "")
        assert (row.epoch if row else 0) >= self.epoch
        assert (row.version if row else 0) >= self.version

    async def end(self, stores: EmbeddedStores) -> None:
        row = await stores.ownership.read("s", "")
        assert row is not None
        assert row.holder == ""


STORIES: list[Callable[[], Any]] = [
    QueueStory,
    LogStory,
    ControlStory,
    InventoryStory,
    SegmentsStory,
    ResultsStory,
    LettersStory,
    DropsStory,
    StreamRowsStory,
    ReplaysStory,
    SchedulesStory,
    OwnershipStory,
]


@pytest.mark.parametrize("story", [*STORIES, EnqueueStory], ids=lambda story: story.__name__)
async def test_nothing_told_is_lost_and_nothing_half_written_by_a_crash_at_any_point(
    story: Callable[[], Any], tmp_path: Path
) -> None:
    points = await explore(story, tmp_path)
    assert len(points) == story().points, [str(point) for point in points]


# Of the other stories, and of all in all their moments: the long test below.
async def test_a_second_crash_while_the_first_is_recovered_from_loses_nothing_either(tmp_path: Path) -> None:
    await explore(OwnershipStory, tmp_path, again=1)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("story", [*STORIES, EnqueueStory], ids=lambda story: story.__name__)
async def test_a_second_crash_at_any_point_after_any_first_loses_nothing(
    story: Callable[[], Any], tmp_path: Path
) -> None:
    await explore(story, tmp_path, again=None)


def writing_methods() -> set[str]:
    """Every method of the embedded stores that asks its file's writer for something, as class.method."""
    found: set[str] = set()
    stores = Path(tailrace.__file__).parent / "stores"
    for path in (*stores.rglob("sqlite*.py"), *stores.rglob("sqlite/*.py")):
        for class_ in [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]:
            for method in class_.body:
                calls = {ast.unparse(node.func) for node in ast.walk(method) if isinstance(node, ast.Call)}
                if calls & {"self._file.write", "self._file.write_when"}:
                    found.add(f"{class_.name}.{getattr(method, 'name', '')}")
    return found


async def test_the_stories_pass_every_method_that_writes(tmp_path: Path) -> None:
    points = [point for story in STORIES for point in await passed(story, tmp_path / story.__name__)]
    written = {name for point in points for name in point.writes}
    of_spools = {name for name in writing_methods() if name.startswith("SqliteSpool.")}  # test_spool_crashes.py
    read = {"SqliteQueue.open", "SqliteQueue.tally"}  # in the writer
    assert written == writing_methods() - of_spools - read


class Broken(ResultsStory):
    """Tells of a result before it is kept."""

    async def act(self, stores: EmbeddedStores) -> None:
        if not self._done:
            self._done = 1
            await stores.results.put({"a": b"1"})
        await super().act(stores)


async def test_a_story_with_a_hole_is_caught_and_the_point_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        await explore(Broken, tmp_path)
    assert any("before point 0 of 2: state SqliteResults.put" in note for note in caught.value.__notes__)


class BrokenAgain(ResultsStory):
    """Recovers by telling of a result before it is kept."""

    async def act(self, stores: EmbeddedStores) -> None:
        if self._told and not self._done:
            self._done = 1
            await stores.results.put({"a": b"1"})
        self._told = True
        await super().act(stores)

    _told = False


async def test_a_hole_in_the_recovery_is_caught_by_the_second_crash_alone(tmp_path: Path) -> None:
    await explore(BrokenAgain, tmp_path / "one")
    with pytest.raises(AssertionError) as caught:
        await explore(BrokenAgain, tmp_path / "two", again=1)
    assert any("and one before point 0 after that" in note for note in caught.value.__notes__)
