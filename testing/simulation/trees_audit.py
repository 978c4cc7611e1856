"""Trees of jobs from outside of every host: after each commit of their queue no row disagrees with another, with the
workloads or with the plan; once over, each tree has the items that were added, once, and all that were made of them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Set
from typing import Any

from ...model.job import ResultPage
from ...runtime import gathering
from ...stores.jobs.rules import retrying
from ...stores.jobs.rules.ending import ends_tree
from ...stores.jobs.sqlite import advance as advance_
from ...stores.jobs.sqlite import queries
from .branches import PageReader
from .client import WorldClient
from .grower import Grower
from .journal import Execution, Journal
from .plan import Plan
from .plan_trees import TOLD, BranchItem
from .planting import instead
from .sqlite_disk import Disk
from .tree_rows import CANCELLED, DIED, DONE, FAILED, OVER, PENDING, SUCCEEDED, Grown, ItemRow, JobRow, grown_in
from .trees_asked import asked

#: Rows that one step takes in these worlds, and steps of one transaction: so few that something comes between.
FEW, STEPS = 2, 1

#: An item that the plan does not know.
_NOBODY = BranchItem(-1, "")
_HEIGHT = "SELECT coalesce(max(fence), 0) FROM tasks"


@contextlib.contextmanager
def in_small_steps() -> Iterator[None]:
    """Has trees changed in small steps, where they are changed in steps, and results read through the world."""
    with (
        instead(gathering, "RunReader", PageReader),
        instead(advance_, "STEPS", STEPS),
        instead(advance_, "SOME", FEW),
        instead(advance_, "EXPANDED", FEW),
        instead(retrying, "TAKEN", FEW),
    ):
        yield


class TreesAudit:
    """A Guest, and what runs ask of trees. `over` has each tree as it was when it was first complete, by its id.

    Invariants: `_of` has the tree of each item that there ever was; `_shut` the highest fence of the queue as each tree
    was paused, ended or completed (none: it is open).
    """

    def __init__(self, plan: Plan, disk: Disk, journal: Journal, client: WorldClient, grower: Grower) -> None:
        self.over: dict[str, Grown] = {}
        self.told: dict[str, set[str]] = {}
        self.buried: Callable[[], Set[str]] = frozenset  # dead letters, and what was one
        self._plan = plan
        self._disk = disk
        self._journal = journal
        self._client = client
        self._grower = grower
        self._of: dict[str, str] = {}
        self._shut: dict[str, int] = {}
        self._seen: Any = None
        self._plans = {id: tree for tree in plan.trees for id in (tree.id, tree.again)}
        self._fed = {(tree.k, each.job, each.origin, each.part): each for tree in plan.trees for each in tree.items}
        journal.trees = self
        journal.added = grower.added
        journal.begins += [self._begins, grower.begins]

    def _wrong(self, tree: str, what: str) -> None:
        self._journal.wrong(f"trees: {tree} {what}")

    # ---- what runs

    def runs(self, id: str, job: str, step: Any, n: int) -> BranchItem:
        """The item that runs with this payload. Checks that it is the one that this workload is."""
        k, _, name = job.partition(".")
        tree = self._plan.trees[int(k)]
        own = self._of.get(id, "")
        grown = self._grown().get(own)
        if n >= 0:
            item = self._grower.items[n]
        elif name == TOLD:
            item = self._grower.items[tree.told]
            self._tells(id, step)
        elif tree.job[name].gather:
            item = self._fed[tree.k, name, -1, 0]
            if grown is not None:
                self._gathers(grown, id, name)
                if not tree.narrow:
                    self._results_of(grown, id, name, step)
        else:
            origin, part = (step[0], step[1]) if tree.job[name].each else (step[0][0], 0)
            item = self._fed.get((tree.k, name, origin, part), _NOBODY)
            if item is _NOBODY:
                self._wrong(own, f"runs {id} of {name} with {str(step)[:100]}, which nothing returned")
                return item
        if grown is not None and (row := grown.items.get(int(id, 16))) is not None:
            if grown.plan is not tree or grown.name(row) != item.job:
                self._wrong(own, f"has {id} in its job {grown.name(row)}, which runs item {item.n} of {item.job}")
            elif row.origin in grown.items and self._n(row.origin) != item.origin:
                self._wrong(own, f"has {id} of item {self._n(row.origin)}, which runs item {item.n} of {item.origin}")
        return item

    def _gathers(self, grown: Grown, id: str, name: str) -> None:
        """Checks that a gathering item starts when its parents are complete."""
        grown, parents = self._gathered_by(grown, id, name)
        for job in parents:
            if grown.jobs[job].complete_at is None:
                self._wrong(grown.row.id, f"runs {name}, and its job {grown.jobs[job].name} is not complete")

    def gathered(self, id: str, results: list[Any]) -> None:
        """Checks the results that a run of a narrow tree has read."""
        grown = self._grown().get(self._of.get(id, ""))
        row = None if grown is None else grown.items.get(int(id, 16))
        if grown is not None and row is not None:
            self._results_of(grown, id, grown.name(row), results)

    def _results_of(self, grown: Grown, id: str, name: str, step: Any) -> None:
        """Checks that a gathering item has all results of its parents, in order."""
        grown, parents = self._gathered_by(grown, id, name)
        rows = sorted((each.job, each.item) for each in grown.items.values() if each.state == SUCCEEDED)
        results = [self._planned(item).result for job in parents for of, item in rows if of == job]
        if step != results:
            self._wrong(grown.row.id, f"gathers {str(step)[:100]} for {name}, and there is {str(results)[:100]}")

    def _gathered_by(self, grown: Grown, id: str, name: str) -> tuple[Grown, list[int]]:
        """The tree whose results an item gathers, with their jobs: of one that is tried again, that where it failed."""
        row = grown.items.get(int(id, 16))
        former = self.over.get(grown.plan.id) if grown.again else None
        if former is not None and row is not None and row.origin in former.items:
            grown = former
        return grown, sorted(job.job for job in grown.jobs.values() if job.name in grown.plan.job[name].parents)

    def _tells(self, id: str, event: Any) -> None:
        """Checks that the end of a tree is told once it is over, and as it was."""
        tree = event["job"]
        if not self._journal.was(id):  # a dead letter that was redriven tells it once more
            self.told.setdefault(tree, set()).add(id)
        grown = self.over.get(tree)
        if grown is None:
            if tree in self._deleted() and tree not in self._grown():
                return  # it was forgotten as soon as it was over
            self._wrong(tree, "tells of its end, and is not over")
            return
        ended = Counter(each.state for each in grown.items.values())
        if not grown.row.deleted and (event["state"], event["succeeded"], event["failed"]) != (
            grown.row.ending or "complete",
            ended[SUCCEEDED],
            ended[FAILED],
        ):
            self._wrong(tree, f"tells {event}, and was {grown.row.ending or 'complete'} with {dict(ended)}")

    def _begins(self, run: Execution) -> None:
        """Checks that nothing of a tree is handed out while it is paused, nor once it ends."""
        tree = self._of.get(run.id, "")
        if run.fence > self._shut.get(tree, run.fence):
            self._wrong(tree, f"has {run.id} start, which was handed out while it was paused or since it ends")

    def n_of(self, id: str) -> int | None:
        """The number of the item that a workload was; None: it never ran."""
        story = self._journal.stories.get(id)
        return story.n if story is not None and story.executions else None

    def reads(self, run: Execution, after: str) -> None:
        """Has the results after a place read for a run that gathers them."""
        self._grower.reads(run, after)

    def page(self, run: Execution, after: str) -> ResultPage | None:
        """The results that a run waits for; None: they are not there yet. Raises Conflict if it gets none."""
        return self._grower.page(run, after)

    def unfit(self, id: str) -> bool:
        """Whether a workload ran well, and no item can be made of its result."""
        n = self.n_of(id)
        return n in self._grower.of and self._grower.of[n].unfit(self._grower.items[n])

    def _n(self, item: int | None) -> int | None:
        return None if item is None else self.n_of(f"{item:016x}")

    def _planned(self, item: int) -> BranchItem:
        n = self._n(item)
        assert n is not None, f"{item:016x} succeeded and never ran"
        return self._grower.items[n]

    # ---- after each commit

    def _grown(self) -> dict[str, Grown]:
        """All trees as they stand."""
        return grown_in(self._disk, self._plans)

    def committed(self, file: str) -> None:
        """Checks that every tree agrees with itself, with its workloads and with its plan."""
        if file != "queue":
            return
        all_ = self._grown()
        if all_ == self._seen:
            return
        self._seen = all_
        for id, grown in all_.items():
            self._of.update({item.id: id for item in grown.items.values()})
            self._note(id, grown)
            if grown.row.complete_at is not None and grown.row.deleted:
                continue  # it is being forgotten
            self._compare(id, grown)
            if grown.row.complete_at is not None:
                was = self.over.setdefault(id, grown)
                if (was.jobs, was.items) != (grown.jobs, grown.items):
                    self._wrong(id, "changes though it is complete")
            for line in queries.audit(self._disk.connect("queue"), id) or ():
                self._wrong(id, f"does not agree with itself: {line}")

    def _note(self, id: str, grown: Grown) -> None:
        """Notes how high fences were when a tree was shut, and the items that are cancelled with it."""
        row = grown.row
        if row.paused or row.ending or row.complete_at is not None:
            if id not in self._shut:
                ((self._shut[id],),) = self._disk.rows("queue", _HEIGHT)
        else:
            self._shut.pop(id, None)
        if row.ending:
            self._client.taken_back |= {each.id for each in grown.items.values() if each.task == CANCELLED}
        if row.complete_at is not None:
            self.over.setdefault(id, grown)

    def _compare(self, id: str, grown: Grown) -> None:
        counted = {job: Counter[int]() for job in grown.jobs}
        children: dict[int, Counter[tuple[int, int]]] = {}
        for item in grown.items.values():
            counted[item.job][item.state] += 1
            if not self._alike(item):
                self._wrong(id, f"has {item.id} in state {item.state}, and its workload is in state {item.task}")
            if item.origin is not None:
                children.setdefault(item.origin, Counter())[item.job, item.part] += 1
        for job, origin in grown.apart:
            if job in counted:
                counted[job][PENDING] += 1
                children.setdefault(origin, Counter())
        for job, row in grown.jobs.items():
            found = counted[job]
            if (row.pending, row.succeeded, row.failed) != (found[PENDING], found[SUCCEEDED], found[FAILED]):
                self._wrong(id, f"counts {row.pending}, {row.succeeded}, {row.failed} for {row.name}: {dict(found)}")
            self._in_its_time(id, grown, row)
        for item in grown.items.values():
            self._has(id, grown, item, children.pop(item.item, Counter()))
        for origin in children:
            if not grown.again:
                self._wrong(id, f"has items of {origin:016x}, which is none of its items")

    def _alike(self, item: ItemRow) -> bool:
        """Whether the states of an item and its workload fit."""
        if item.task is None or item.state == PENDING:
            return item.task is not None and item.task < OVER
        return item.task == DONE if item.state == SUCCEEDED else item.task > DONE

    def _in_its_time(self, id: str, grown: Grown, row: JobRow) -> None:
        """Checks that a job is sealed only when all before it are complete, and complete only when it is sealed and
        nothing pends."""
        before = [each for each in grown.jobs.values() if each.name in grown.plan.job[row.name].parents]
        waits = any(each.complete_at is None for each in before)
        if (row.sealed and waits and not grown.row.ending) or (row.complete_at is not None and waits):
            self._wrong(id, f"has its job {row.name} sealed or complete, and one before it is not complete")
        if row.complete_at is not None and (row.pending or not row.sealed):
            self._wrong(id, f"has its job {row.name} complete, with {row.pending} pending")

    def _has(self, id: str, grown: Grown, item: ItemRow, found: Counter[tuple[int, int]]) -> None:
        """Checks that exactly the planned items are made of an item that succeeded, and none of any other."""
        expected: Counter[tuple[int, int]] = Counter()
        if item.state == SUCCEEDED:
            planned = self._planned(item.item)
            if grown.plan.unfit(planned):
                self._wrong(id, f"has {item.id} succeed, and no item can be made of what it returned")
                return
            for job in grown.jobs.values():
                of = grown.plan.job[job.name]
                if grown.name(item) in of.parents and not of.gather:
                    parts = grown.apart.get((job.job, item.item), planned.width) if of.each else 1
                    expected.update((job.job, part) for part in range(parts))
        if found - expected or (expected - found and not grown.row.ending):
            there = f"{sorted(found.elements())}, expected {sorted(expected.elements())}"
            self._wrong(id, f"has of {item.id} the items {there} (job and part)")

    # ---- when everything should be over

    def pending(self) -> Iterator[str]:
        """Lines about calls that were not answered, and trees that are not over."""
        grower = self._grower
        for tree in self._plan.trees:
            if tree.k not in grower.made or tree.k not in grower.seals:
                yield f"{tree.id} was not made, or not sealed"
            calls = sum((tree.k, place) in grower.calls for place in range(len(tree.calls)))
            asks = sum((tree.k, place) in grower.asks for place in range(len(tree.asks)))
            if calls < len(tree.calls) or asks < len(tree.asks):
                yield f"{tree.id} has calls that were not answered"
            forgotten = tree.id in self._deleted() and tree.id not in self._grown()
            if tree.k in grower.made and tree.id not in self.over and not forgotten:
                yield f"{tree.id} is not over"
            if any((tree.k, place) not in grower.redriven for place in range(len(tree.redrives))):
                yield f"{tree.id} has redrives that were not answered"
            if tree.retry and tree.k not in grower.retries and tree.id not in self._deleted():
                yield f"the retry of {tree.id} was not answered"
            if tree.k in grower.retries and grower.retries[tree.k].done and tree.again not in self.over:
                yield f"{tree.again} is not over"

    def _deleted(self) -> set[str]:
        return {tree.id for tree in self._plan.trees if any(ask.what == "delete" for ask in tree.asks)}

    def made(self) -> Set[str]:
        """Ids of the workloads of items, and of those that tell of ends."""
        return self._of.keys() | {id for ids in self.told.values() for id in ids}

    def at_rest(self) -> None:
        """Checks that each tree has what was added to it, and ended as it should."""
        buried = self.buried()
        for id, grown in self.over.items():
            if grown.row.deleted:
                continue  # it may have been forgotten in part when it was first seen to be complete
            for line in asked(self._grower, grown, self.over.get(grown.plan.id), self.n_of, self._deleted()):
                self._wrong(id, line)
            if (grown.plan.told >= 0) != (len(self.told.get(id, ())) == 1):
                self._wrong(id, f"told of its end by {len(self.told.get(id, ()))} workloads")
            failed = sum(each.state == FAILED for each in grown.items.values())
            over_it = ends_tree(grown.plan.policy, grown.plan.most_failed, failed)
            if grown.row.ending != "cancelled" and over_it != (grown.row.ending == "failed"):
                self._wrong(id, f"ended as {grown.row.ending or 'complete'!r} with {failed} failed items")
            for item in grown.items.values():
                n = self.n_of(item.id)
                wanted = n is not None and grown.plan.unfit(self._grower.items[n])
                if item.task == DIED and not wanted and item.id not in buried:
                    self._wrong(id, f"has {item.id} failed, which is no dead letter, nor returned what fits nothing")
