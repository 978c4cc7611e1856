"""Jobs against a model of them: Hypothesis takes steps that nobody thought of and compares after each.

The model counts items: those that wait, those that are out, and how the others ended. A function has the name of one
job of one tree, so that what is claimed tells whose it is.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ...model.claim import Settle, State
from ...model.demand import Cell, Demand
from ...model.errors import Conflict
from ...model.gathered import BEGIN, gathered_results
from ...model.job import JobHolder, JobItem, ResultPage, TreeSpec
from .jobs_engine import LEASE, MOST, JobsEngine, feedings, job, make

#: Results of runs: a list of so many elements, for those jobs that take one apart. A few of them fit one payload.
ELEMENTS = 3
RESULT = b"[1,2,3" + b" " * (MOST // 4) + b"]"
SHAPES = {
    "alone": [job("a")],
    "two": [job("a"), job("b", "a")],
    "fan": [job("a"), job("b", "a"), job("c", "a", each=True)],
    "join": [job("a"), job("b", "a"), job("c", "a"), job("d", "b", "c")],
    "gather": [job("a"), job("b", "a", gather=True), job("c", "b")],
    "deep": [job("a"), job("b", "a", each=True), job("c", "b"), job("d", "a", "c", gather=True)],
}
TREES = 4
#: Ends of a run. `plain`: nothing is said of a result; `none`: there is none; `odd`: it is no list.
OUTCOMES = ["success", "success", "success", "plain", "none", "odd", "fail", "back", "not yet"]


@dataclass
class ModelJob:
    """A job, as the model knows it."""

    parents: tuple[str, ...]
    gather: bool
    each: bool
    waiting: int = 0
    out: set[str] = field(default_factory=set)
    succeeded: int = 0
    failed: int = 0
    sealed: bool = False

    @property
    def pending(self) -> int:
        return self.waiting + len(self.out)

    @property
    def complete(self) -> bool:
        return self.sealed and not self.pending


@dataclass
class ModelTree:
    """A tree, as the model knows it."""

    spec: TreeSpec
    jobs: dict[str, ModelJob]
    paused: bool = False
    ending: str = ""

    @property
    def over(self) -> bool:
        return all(each.complete for each in self.jobs.values())

    @property
    def state(self) -> str:
        if self.over:
            return self.ending or "complete"
        return "ending" if self.ending else "paused" if self.paused else "running"

    def end(self, how: str) -> None:
        """Ends the tree early: waiting items are cancelled."""
        self.ending = self.ending or how
        for each in self.jobs.values():
            each.sealed = True
            each.failed += each.waiting
            each.waiting = 0

    def succeed(self, name: str, elements: int) -> None:
        """Counts a success of an item, and the items that are made of its result."""
        self.jobs[name].succeeded += 1
        for child in self.jobs.values() if not self.ending else ():
            if name in child.parents and not child.gather:
                child.waiting += elements if child.each else 1

    def fail(self, name: str) -> None:
        """Counts a failure of an item, and ends the tree where its policy says so."""
        self.jobs[name].failed += 1
        failed = sum(each.failed for each in self.jobs.values())
        most = {"continue": 10**9, "fail_tree": 0, "threshold": self.spec.most_failed}[self.spec.policy]
        if failed > most and not self.ending:
            self.end("failed")

    def advance(self) -> None:
        """Seals each job whose parents are complete, and adds the item of a gather."""
        for _ in self.jobs:
            for each in self.jobs.values():
                if each.parents and not each.sealed and all(self.jobs[parent].complete for parent in each.parents):
                    each.sealed = True
                    each.waiting += each.gather


class JobsModel(RuleBasedStateMachine):
    """Random steps on an engine of jobs and on the model. An engine's test derives from it, and makes and disposes of
    an open and empty engine."""

    async def make_engine(self) -> JobsEngine:
        raise NotImplementedError

    async def dispose(self, engine: JobsEngine) -> None:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.engine = self.do(self.make_engine())
        self.trees: list[ModelTree] = []
        self.fences: dict[str, int] = {}
        self.former: list[tuple[str, int]] = []  # ids and fences that were lost
        self.dead: list[tuple[ModelTree, str, str]] = []  # trees, jobs and workloads of items that failed
        self.lives: dict[str, str] = {}  # workloads that were redriven, and what they became
        self.calls = 0

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.do(self.dispose(self.engine))
        self.runner.close()

    @precondition(lambda self: len(self.trees) < TREES)
    @rule(
        shape=st.sampled_from(sorted(SHAPES)),
        policy=st.sampled_from(["continue", "continue", "fail_tree", "threshold"]),
    )
    def make(self, shape: str, policy: str) -> None:
        spec = TreeSpec(f"t{len(self.trees)}", shape, SHAPES[shape], policy=policy, most_failed=2)
        self.do(make(self.engine, spec))
        self.do(make(self.engine, spec))  # asked again
        jobs = {each.name: ModelJob(each.parents, each.gather, each.each) for each in spec.jobs}
        self.trees.append(ModelTree(spec, jobs))

    @precondition(lambda self: self.trees)
    @rule(at=st.integers(0, TREES), count=st.integers(0, 5), again=st.booleans())
    def add(self, at: int, count: int, again: bool) -> None:
        tree = self.trees[at % len(self.trees)]
        root = tree.jobs["a"]
        self.calls += 1
        call = (tree.spec.id, "a", f"call-{self.calls}", [JobItem(b"x")] * count)
        if root.sealed:
            with pytest.raises(Conflict):
                self.do(self.engine.jobs.add(*call))
            return
        for _ in range(1 + again):
            assert self.do(self.engine.jobs.add(*call)) == count
        root.waiting += count

    @precondition(lambda self: self.trees)
    @rule(at=st.integers(0, TREES))
    def seal(self, at: int) -> None:
        tree = self.trees[at % len(self.trees)]
        assert self.do(self.engine.jobs.seal(tree.spec.id, "a")) is not tree.jobs["a"].sealed
        tree.jobs["a"].sealed = True
        tree.advance()

    @precondition(lambda self: self.trees)
    @rule(at=st.integers(0, TREES), what=st.sampled_from(["cancel", "pause", "resume", "resume"]))
    def change(self, at: int, what: str) -> None:
        tree = self.trees[at % len(self.trees)]
        was_over, was_ending = tree.over, bool(tree.ending)
        word = self.do(self.engine.jobs.change(tree.spec.id, what, "why"))
        assert word == ("over" if was_over or was_ending else "done")
        if was_over or was_ending:
            return
        if what == "cancel":
            tree.end("cancelled")
        else:
            tree.paused = what == "pause"

    def demand(self, total: int) -> Demand:
        cells = {Cell(each.kind.function, 2): 100 for tree in self.trees for each in feedings(tree.spec)}
        return Demand(cells, frozenset(), total)

    @precondition(lambda self: self.trees)
    @rule(total=st.integers(1, 40))
    def lease(self, total: int) -> None:
        leased = None
        for _ in range(5):  # what is found of paused trees is put aside
            leased = leased or self.do(self.engine.queue.lease(self.demand(total), LEASE, 0))
        due = sum(each.waiting for tree in self.trees if not tree.paused for each in tree.jobs.values())
        assert (0 if leased is None else len(leased.ids)) <= min(total, due)
        assert leased is not None or not due
        if leased is None:
            return
        assert [*leased.jobs] == [*range(len(leased.ids))]
        for id, kind, payload in zip(leased.ids, leased.kinds, leased.payloads, strict=True):
            tree, found = self.of(kind.function)
            if found.gather:
                results = self.results(JobHolder(id, leased.fence), payload)
                assert results == sum(tree.jobs[parent].succeeded for parent in found.parents)
            assert not tree.paused, "an item of a paused tree was handed out"
            found.waiting -= 1
            found.out.add(id)
            self.fences[id] = leased.fence

    def results(self, holder: JobHolder, payload: bytes) -> int:
        """Number of results that an item gathers, in its payload or read by pages."""
        if not payload.startswith(BEGIN):
            return len(json.loads(payload.strip(b"<>")))
        count, after = 0, ""
        while True:
            page: ResultPage = self.do(self.engine.jobs.gathered(holder, after, 3, 1 << 20))
            count += sum(each.succeeded for each in page.results)
            after = page.after
            if not after:
                assert count == sum(each.succeeded for each in gathered_results(payload).jobs)
                return count

    def of(self, function: str) -> tuple[ModelTree, ModelJob]:
        id, _, name = function.partition(":")
        tree = next(each for each in self.trees if each.spec.id == id)
        return tree, tree.jobs[name]

    @precondition(lambda self: self.fences)
    @rule(outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1))
    def settle(self, outcomes: list[str]) -> None:
        for tree in self.trees:
            for name, each in tree.jobs.items():
                for id in sorted(each.out):
                    outcome = outcomes[int(id, 16) % len(outcomes)]
                    if outcome != "not yet":
                        self.end(tree, name, id, outcome)

    def end(self, tree: ModelTree, name: str, id: str, outcome: str) -> None:
        fence, each = self.fences.pop(id), tree.jobs[name]
        apart = any(child.each and name in child.parents for child in tree.jobs.values())
        state = {"fail": State.FATAL_FAILURE, "back": State.NEW}.get(outcome, State.SUCCESS)
        result = {"success": RESULT, "odd": b"7"}.get(outcome)
        told = Settle(id, fence, state, reason="why", result=result)
        arguments = (fence, [id], []) if outcome == "plain" else (fence, [], [told])
        assert self.do(self.engine.queue.settle(*arguments)) == []
        assert self.do(self.engine.queue.settle(*arguments)) in ([], [id])  # told again
        each.out.discard(id)
        if outcome == "back" and not tree.ending:
            each.waiting += 1
        elif state is State.SUCCESS and not (outcome == "odd" and apart):
            tree.succeed(name, ELEMENTS if outcome == "success" else 0)
        else:
            tree.fail(name)
            self.dead.append((tree, name, id))
        tree.advance()

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def redrive(self, data: st.DataObject) -> None:
        tree, name, id = data.draw(st.sampled_from(self.dead))
        each = tree.jobs[name]
        [answer] = self.do(self.engine.jobs.redrive([id]))
        if id in self.lives:
            assert answer.workload == self.lives[id]
        elif each.complete or tree.ending:
            assert ("is complete" if each.complete else "which ends") in answer.refused
        else:
            self.lives[id] = answer.workload
            each.failed -= 1
            each.waiting += 1

    @rule()
    def lose(self) -> None:
        """Loses all holders: their items wait again once the leases are over, or are cancelled."""
        self.do(self.engine.pass_time(LEASE + 1))
        self.do(self.engine.queue.lease(Demand({Cell("none", 2): 1}, frozenset(), 1), LEASE, 0))
        for tree in self.trees:
            for name, each in tree.jobs.items():
                for id in sorted(each.out):
                    self.former.append((id, self.fences.pop(id)))
                    each.out.discard(id)
                    if tree.ending:
                        tree.fail(name)
                    else:
                        each.waiting += 1
            tree.advance()

    @precondition(lambda self: self.former)
    @rule(data=st.data())
    def late(self, data: st.DataObject) -> None:
        """Tries a settlement by a former holder, which changes nothing."""
        id, fence = data.draw(st.sampled_from(self.former))
        late = Settle(id, fence, State.SUCCESS, result=RESULT)
        assert self.do(self.engine.queue.settle(fence, [], [late])) == [id]

    @rule()
    def reopen(self) -> None:
        self.do(self.engine.reopen())

    @invariant()
    def agrees(self) -> None:
        for tree in self.trees:
            found = self.do(self.engine.jobs.show(tree.spec.id))
            assert found.state == tree.state
            stands = {each.name: (each.pending, each.succeeded, each.failed, each.sealed) for each in found.jobs}
            expected = {
                name: (each.pending, each.succeeded, each.failed, each.sealed) for name, each in tree.jobs.items()
            }
            assert stands == expected
            assert self.do(self.engine.jobs.audit(tree.spec.id)) == []
