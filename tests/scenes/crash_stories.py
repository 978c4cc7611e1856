"""Stories that crashes are played over: the lives of a queue's items, of a log, and of rows of ownership."""

from __future__ import annotations

import json
import sqlite3

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.one_item import CHANGED
from tailrace.model.workload import Kind
from tailrace.stores.log.log import Record
from tailrace.stores.queue.intake import Callback
from tailrace.stores.queue.lifecycle import TERMINAL
from tailrace.stores.queue.queue import NewItem, Reschedule
from tailrace.testing.clock import ManualClock

DEMAND = Demand({Cell("f", 2): 10, Cell("f", 3): 10}, frozenset(), 10)
LEASE = 30.0


class QueueStory:
    """Items submitted, cancelled, moved, leased, renewed, settled in each way and forgotten."""

    points = 15

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ids: dict[str, str] = {}
        self.fences: dict[str, int] = {}
        self.ended: dict[str, State] = {}
        self.moved = 0.0

    async def act(self, stores: EmbeddedStores) -> None:
        queue = stores.queue
        for name in ("good", "retried", "bad", "stopped"):
            if name not in self.ids:  # asked again with its dedupe key when no answer came
                (answer,) = await queue.submit([NewItem(Kind("f", 2), name.encode(), dedupe_key=name)])
                self.ids[name] = answer.id
        if "stopped" not in self.ended:
            await queue.cancel([self.ids["stopped"]])
            self.ended["stopped"] = State.CANCELLED
        if not self.moved:  # asked again when no answer came
            due = self.clock.wall() + 7
            assert await queue.reschedule([Reschedule(self.ids["good"], due, 3)]) == [CHANGED]
            self.moved = due
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
        """Looks up items that may have ended without an answer, before they are forgotten."""
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
            assert name != "good" or self.clock.wall() >= self.moved, "handed out before it was to be"
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
                assert name != "good" or not self.moved or status.kind.priority == 3
        counts = await stores.queue.counts()
        assert sum(counts.values()) <= 4, "submitted twice"

    async def end(self, stores: EmbeddedStores) -> None:
        assert not any((await stores.queue.counts()).values())


class CallbackStory:
    """A story of workloads whose ends are told: each once, and none before it is there."""

    points = 8

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ids: dict[str, str] = {}
        self.told_by: dict[str, str] = {}

    async def act(self, stores: EmbeddedStores) -> None:
        queue = stores.queue
        for name in ("good", "bad", "stopped"):
            if name not in self.ids:  # asked again with its dedupe key when no answer came
                told = Callback(Kind("g", 2), b'{"event":', b"}")
                (answer,) = await queue.submit([NewItem(Kind("f", 2), b"", dedupe_key=name, on_done=told)])
                self.ids[name] = answer.id
        assert await queue.cancel([self.ids["stopped"]]) in (["cancelled"], ["ended"])
        while await self._left(stores):
            leased = await queue.lease(Demand({Cell("f", 2): 10, Cell("g", 2): 10}, frozenset(), 10), LEASE, 0)
            if leased is None:
                self.clock.advance(LEASE + 1)  # whoever had it died with the process
                continue
            bad = [id for id in leased.ids if id == self.ids["bad"]]
            for id, payload in zip(leased.ids, leased.payloads, strict=True):
                if payload:
                    await self._heard(stores, id, json.loads(payload)["event"])
            others = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="no") for id in bad]
            assert await queue.settle(leased.fence, [id for id in leased.ids if id not in bad], others) == []

    async def _left(self, stores: EmbeddedStores) -> int:
        counts = await stores.queue.counts()
        return sum(counts.values()) - sum(counts[state.label] for state in TERMINAL)

    async def _heard(self, stores: EmbeddedStores, id: str, event: dict[str, str]) -> None:
        assert self.told_by.setdefault(event["workload"], id) == id, "told by two workloads"
        (status,) = await stores.queue.status([event["workload"]])
        assert status is not None and status.state.label == event["state"], "told before it was there"

    async def check(self, stores: EmbeddedStores) -> None:
        """Checks that nothing is told of items that did not end."""
        for each in await stores.queue.status([*self.told_by]):
            assert each is not None and each.ended_at

    async def end(self, stores: EmbeddedStores) -> None:
        assert self.told_by.keys() == {*self.ids.values()}
        assert (await stores.queue.counts())["success"] == 1 + 3
        assert sum((await stores.queue.counts()).values()) == 6


class EnqueueStory:
    """A story of rows that another process left in the queue's file: they become items, which end."""

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
        """Counts of the items that succeeded, and of all items."""
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


class OwnershipStory:
    """A story of owners that take, renew and release, and after a crash take again."""

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
