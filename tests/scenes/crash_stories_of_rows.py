"""Stories that crashes are played over: the stores that keep rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.act import Act
from tailrace.model.dead_letter import EVERY, DeadLetter, Moved, Past
from tailrace.model.drop import Cause, Drop
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.ledger import NOT_YET, LedgerEntry, LedgerPlace
from tailrace.model.limits import Quota, QuotaChange
from tailrace.model.member import FleetMember, MemberOrder
from tailrace.model.replay import Bound, ReplayOrder, Stretch, asked_for
from tailrace.model.replay import ReplayState as Going
from tailrace.model.schedule import Firing, Schedule, ScheduleRow
from tailrace.model.segment import Segment
from tailrace.model.usage import UsageReport, UsageRow
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.inventory.inventory import InventoryEntry as Seen
from tailrace.testing.clock import ManualClock

#: A step and what the store holds after it.
Step = tuple[Callable[[], Awaitable[object]], Any]


class RowsStory:
    """A story of rows that are written step by step: after a crash there are the rows of the last answered step, or
    those of the step without an answer, whole."""

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
            (lambda: control.put_quotas(QuotaChange(0, "ann", "", 5.0, (quota,)), 0), ([gate], [quota], [])),
            (lambda: control.register([spec]), ([gate], [quota], [spec])),
            (lambda: control.put_gate(dataclasses.replace(gate, action="resume")), ([], [quota], [spec])),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        found = await stores.control.snapshot()
        return [dataclasses.replace(gate, since=0.0) for gate in found.gates], found.quotas, found.functions


class FleetStory:
    """A story of a store's fleet: the first one that claims it has it; a claim without an answer may stand or not."""

    points = 1

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._said = False

    async def act(self, stores: EmbeddedStores) -> None:
        if not self._said:
            assert await stores.control.belong("shop") == "shop"
            self._said = True

    async def check(self, stores: EmbeddedStores) -> None:
        if self._said:
            assert await stores.control.belong("other") == "shop"

    async def end(self, stores: EmbeddedStores) -> None:
        assert await stores.control.belong("other") == "shop"


class ActsStory(RowsStory):
    """A story of acts: one without an answer may be begun twice, and is ended where it was begun last."""

    points = 4

    def __init__(self) -> None:
        super().__init__({})

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        control = stores.control

        async def end() -> None:
            await control.end_act((await control.acts())[0].number, "done")

        first, second = Act(0, 1.0, "ann", "here", "gate pause"), Act(0, 9.0, "ann", "here", "purge")
        return [
            (lambda: control.begin_act(first), {"gate pause": ""}),
            (end, {"gate pause": "done"}),
            (lambda: control.begin_act(second), {"gate pause": "done", "purge": ""}),
            (lambda: control.forget_acts(5.0, 100), {"purge": ""}),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return {act.what: act.outcome for act in reversed(await stores.control.acts())}


class MembersStory(RowsStory):
    """A story of members: one tells of itself again, and is asked and answers once."""

    points = 4

    def __init__(self) -> None:
        super().__init__(([], None))

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        control, ann, order = stores.control, FleetMember("a", "host:7", "[]"), MemberOrder("7", "a", "seek")
        return [
            (lambda: control.tell_member(ann, 60.0), ([ann], None)),
            (lambda: control.put_order(order), ([ann], order)),
            (lambda: control.answer_order("7", "done"), ([ann], order._replace(answer="done"))),
            (lambda: control.forget_member("a"), ([], order._replace(answer="done"))),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return await stores.control.members(), await stores.control.order("7")


class UsageStory(RowsStory):
    """A story of reports of usage: one without an answer is told again, and counted once."""

    points = 3

    def __init__(self) -> None:
        super().__init__([])

    def steps(self, stores: EmbeddedStores) -> list[Step]:
        usage = stores.usage
        first, second = UsageRow(1, "f", "acme", "stripe", 2, 500), UsageRow(2, "f", "acme", "stripe", 1, 250)
        return [
            (lambda: usage.add(UsageReport("s", 1, [first]), 0), [first]),
            (lambda: usage.add(UsageReport("s", 2, [second]), 0), [first, second]),
            (lambda: usage.add(UsageReport("s", 3, []), 2), [second]),
        ]

    async def holds(self, stores: EmbeddedStores) -> Any:
        return [row for hour in await stores.usage.hours() for row in await stores.usage.of_hour(hour)]


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
        parking = LedgerEntry(4, LedgerPlace.PARKING, 1, 0.1 + 0.2)
        parked, suspect = parking._replace(place=LedgerPlace.PARKED), LedgerEntry(9, LedgerPlace.SUSPECT)
        run = parked._replace(place=LedgerPlace.RUNNING, fence=9, epoch=3)
        done = run._replace(place=LedgerPlace.DONE)
        away = LedgerEntry(5, LedgerPlace.PARKING, 1, NOT_YET)  # runs, and its frontier passes it
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
            (lambda: ledger.write("s", "", [(away, away._replace(place=LedgerPlace.DONE))], 5), (mark, [suspect])),
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
