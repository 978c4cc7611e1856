"""The story of a tree of jobs that crashes are played over: filled, sealed, fed, taken apart, gathered, forgotten."""

from __future__ import annotations

import json
from collections import Counter

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.claim import Leased, Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.gathered import gathered_results
from tailrace.model.job import JobHolder, JobItem, JobSpec, TreeRetry, TreeSpec
from tailrace.model.workload import Kind
from tailrace.stores.jobs.jobs import Feeding, JobOutbox
from tailrace.stores.queue.intake import Callback
from tailrace.testing.clock import ManualClock

NAMES = ("split", "mark", "part", "sum")
TREE = TreeSpec(
    "job-1",
    "story",
    [
        JobSpec("split", "split"),
        JobSpec("mark", "mark", ("split",)),
        JobSpec("part", "part", ("split",), each=True),
        JobSpec("sum", "sum", ("mark", "part"), gather=True),
    ],
    on_done="told",
)
#: Another one, which is cancelled as soon as it is there.
UNWANTED = TreeSpec("job-9", "unwanted", [JobSpec("split", "split")])
TOLD = Callback(Kind("told", 2))
#: Feedings with which the gathered results fit no payload.
FEEDINGS = [Feeding(Kind(name, 2), b'{"x":', b"}", 16 if name == "sum" else 1 << 20) for name in NAMES]
DEMAND = Demand({Cell(name, 2): 2 for name in (*NAMES, "told")}, frozenset(), 2)
LEASE = 30.0


class JobsStory:
    """A tree of four jobs: of three items the last one fails, each of the others is marked and taken apart into two."""

    points = 31

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: set[str] = set()  # what was answered
        self.ended: Counter[str] = Counter()  # items whose end was answered
        self.events: dict[str, set[str]] = {}  # of each event the workloads that told of it

    async def act(self, stores: EmbeddedStores) -> None:
        if await self._over(stores) is not None:
            await self._live(stores)
        self.clock.advance(8 * 86_400)
        while await stores.jobs.sweep():  # type: ignore[attr-defined]
            pass

    async def _live(self, stores: EmbeddedStores) -> None:
        jobs = stores.jobs
        await jobs.create(TREE, FEEDINGS, TOLD)
        self.told.add("made")
        for token, items in (("one", [b"1", b"2"]), ("two", [b"bad"])):
            if token not in self.told:
                assert await jobs.add("job-1", "", token, [JobItem(each) for each in items]) == len(items)
                self.told.add(token)
        await jobs.change("job-1", "pause", "")
        await jobs.change("job-1", "resume", "")
        await jobs.create(UNWANTED, FEEDINGS[:1])
        await jobs.change("job-9", "cancel", "")
        await jobs.seal("job-1", "split")
        self.told.add("sealed")
        while not await self._over(stores):
            await self._round(stores)
        self.told.add("over")
        await self._results(stores)
        assert await stores.jobs.retry("job-1", "job-2", "") == TreeRetry("job-2", 1, ["sum"])
        while not (again := await stores.jobs.show("job-2")) or not again.over or len(self.events) < 2:
            await self._round(stores)
        assert [each.failed for each in again.jobs] == [1, 0, 0, 0]

    async def _over(self, stores: EmbeddedStores) -> bool | None:
        """Whether the tree is over; None: it was forgotten."""
        found = await stores.jobs.show("job-1")
        if found is None:
            return None if "over" in self.told else False
        return found.over

    async def _round(self, stores: EmbeddedStores) -> None:
        leased = await stores.queue.lease(DEMAND, LEASE, 0)
        if leased is None:
            self.clock.advance(LEASE + 1)
            return
        for id, kind, payload in zip(leased.ids, leased.kinds, leased.payloads, strict=True):
            if kind.function == "told":
                self.events.setdefault(json.loads(payload)["id"], set()).add(id)
            elif kind.function == "sum":
                page = await stores.jobs.gathered(JobHolder(id, leased.fence), "", 100, 1 << 20)
                counts = gathered_results(payload).jobs
                assert sum(each.succeeded for each in page.results) == sum(each.succeeded for each in counts) == 6
        assert len(leased.jobs) == len([kind for kind in leased.kinds if kind.function != "told"])
        assert all(len(ids) == 1 for ids in self.events.values()), "an end was told twice"
        assert await stores.queue.settle(leased.fence, [], _ends(leased)) == []
        told = [kind.function == "told" for kind in leased.kinds]
        self.ended.update(id for id, is_told in zip(leased.ids, told, strict=True) if not is_told)
        assert not self.ended or max(self.ended.values()) <= 1, "ended, and handed out again"

    async def _results(self, stores: EmbeddedStores) -> None:
        found = await stores.jobs.results("job-1", "", 100, 1 << 20)
        assert [(each.job, each.result) for each in found.results] == [("sum", b'"sum"')]

    async def check(self, stores: EmbeddedStores) -> None:
        found = await stores.jobs.show("job-1")
        if found is None:
            assert "made" not in self.told or "over" in self.told, "a tree was made, and is gone"
            return
        if "over" not in self.told:
            assert await stores.jobs.audit("job-1") == []
        added = 2 * ("one" in self.told) + ("two" in self.told)
        root, mark, part, last = found.jobs
        assert root.pending + root.succeeded + root.failed >= added or "over" in self.told
        assert root.sealed or "sealed" not in self.told
        assert mark.pending + mark.succeeded == root.succeeded, "each success feeds one item"
        if "over" not in self.told:
            assert sum(each.succeeded + each.failed for each in found.jobs) >= self.ended.total()
        assert last.pending + last.succeeded + last.failed <= 1, "gathered twice"
        assert part.succeeded + part.pending <= 2 * root.succeeded, "taken apart twice"

    async def end(self, stores: EmbeddedStores) -> None:
        assert self.events.keys() == {"job-1:done", "job-2:done"}, "an end was not told"
        assert await stores.jobs.show("job-1") is None


def _ends(leased: Leased) -> list[Settle]:
    ends = []
    for id, kind, payload in zip(leased.ids, leased.kinds, leased.payloads, strict=True):
        if payload == b"bad":
            ends.append(Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad"))
            continue
        result = b'["p","q"]' if kind.function == "split" else f'"{kind.function}"'.encode()
        ends.append(Settle(id, leased.fence, State.SUCCESS, result=result))
    return ends


LIVES = TreeSpec(
    "job-3",
    "lives",
    [JobSpec("split", "split", max_failures_per_item=2)],
    events=("item_succeeded", "item_failed", "job_completed"),
)


class LivesStory:
    """A tree of one item that fails and is redriven, and of whose events a stream hears."""

    points = 11

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: set[str] = set()  # what was answered
        self.failed = ""  # the workload that failed
        self.seen: list[str] = []
        self.lives: set[str] = set()  # those that it was said to have become
        self.heard: list[str] = []

    async def act(self, stores: EmbeddedStores) -> None:
        jobs = stores.jobs
        await jobs.create(LIVES, FEEDINGS[:1])
        if "added" not in self.told:
            await jobs.add(LIVES.id, "", "one", [JobItem(b"1")])
            self.told.add("added")
        while not self.failed:
            await self._fail(stores)
        [answer] = await jobs.redrive([self.failed])
        self.lives.add(answer.workload)
        assert self.lives != {""}, "an item that failed cannot be redriven"
        await jobs.seal(LIVES.id, "split")
        while not (found := await jobs.show(LIVES.id)) or not found.over:
            await self._succeed(stores)
        await self._carry(stores)

    async def _fail(self, stores: EmbeddedStores) -> None:
        if (leased := await self._lease(stores)) is None:
            found = await stores.jobs.show(LIVES.id)
            assert found is not None
            if found.failed:  # its end was kept, and not told
                [self.failed] = self.seen
            return
        self.seen = leased.ids
        ends = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad") for id in leased.ids]
        await stores.queue.settle(leased.fence, [], ends)
        [self.failed] = leased.ids

    async def _succeed(self, stores: EmbeddedStores) -> None:
        if (leased := await self._lease(stores)) is not None:
            assert set(leased.ids) == self.lives
            ends = [Settle(id, leased.fence, State.SUCCESS, result=b"1") for id in leased.ids]
            await stores.queue.settle(leased.fence, [], ends)

    async def _lease(self, stores: EmbeddedStores) -> Leased | None:
        leased = await stores.queue.lease(DEMAND, LEASE, 0)
        if leased is None:
            self.clock.advance(LEASE + 1)
            return None
        assert leased.max_failures == {0: 2}
        return leased

    async def _carry(self, stores: EmbeddedStores) -> None:
        jobs = stores.jobs
        assert isinstance(jobs, JobOutbox)
        while rows := await jobs.take_events(1, 30.0):
            self.heard += [json.loads(row.payload)["event"]["id"] for row in rows]
            await jobs.forget_events([row.number for row in rows])

    async def check(self, stores: EmbeddedStores) -> None:
        found = await stores.jobs.show(LIVES.id)
        if found is not None:
            assert await stores.jobs.audit(LIVES.id) == []
            assert found.pending + found.succeeded + found.failed <= 1, "an item lives twice"
        assert len(self.lives - {""}) <= 1, "redriven twice"

    async def end(self, stores: EmbeddedStores) -> None:
        found = await stores.jobs.show(LIVES.id)
        assert found is not None
        assert (found.state, found.succeeded, found.failed) == ("complete", 1, 0)
        [life] = self.lives
        assert set(self.heard) == {
            f"{self.failed}:item_failed",
            f"{life}:item_succeeded",
            f"{LIVES.id}/split:job_completed",
        }
