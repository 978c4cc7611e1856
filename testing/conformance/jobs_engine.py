"""The engine of jobs, as the laws of jobs need it, and the steps of their stories."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from ...model.claim import Leased, Settle, State
from ...model.demand import Cell, Demand
from ...model.job import JobItem, JobSpec, TreeSpec, TreeStatus
from ...model.workload import Kind
from ...stores.jobs.jobs import Feeding, Jobs
from ...stores.queue.intake import Callback
from ...stores.queue.queue import Queue

LEASE = 30.0
#: Bytes of a payload in the laws.
MOST = 1000
#: Bytes that trees keep in the laws.
KEPT = 400_000
#: The function that is told of ends.
TOLD = "told"


class JobsEngine(Protocol):
    """A store of jobs with the queue that it is beside."""

    @property
    def jobs(self) -> Jobs:
        """The store of jobs, empty at first. It refuses payloads beyond MOST bytes, and additions while KEPT bytes are
        kept."""

    @property
    def queue(self) -> Queue:
        """The open queue, empty at first."""

    async def pass_time(self, seconds: float) -> None:
        """Moves the store's clock by `seconds`."""

    def jump(self, seconds: float) -> None:
        """Sets the store's wall clock forward, or back."""

    async def reopen(self) -> None:
        """Closes the store and opens it again over what it kept."""

    async def sweep(self) -> int:
        """Forgets trees that are past the retention of a week, and does the work that is due."""


def tree_of(*jobs: JobSpec, id: str = "job-1", **said: object) -> TreeSpec:
    """A tree of these jobs, each run by the function of the job's own name."""
    return TreeSpec(id, "law", [*jobs], **said)  # type: ignore[arg-type]


def job(name: str, *parents: str, **said: object) -> JobSpec:
    """A job of a tree."""
    return JobSpec(name, name, parents, **said)  # type: ignore[arg-type]


def feedings(tree: TreeSpec) -> list[Feeding]:
    """The workloads of a tree's jobs: a function has the name of its tree before its job's."""
    return [
        Feeding(Kind(f"{tree.id}:{each.name}", 2, each.collection, each.tenant), b"<", b">", MOST) for each in tree.jobs
    ]


async def make(engine: JobsEngine, tree: TreeSpec) -> TreeSpec:
    """Makes a tree, whose end is told to the function TOLD where it says so."""
    done = Callback(Kind(TOLD, 2), b'{"event":', b"}") if tree.on_done else None
    await engine.jobs.create(tree, feedings(tree), done)
    return tree


async def told(engine: JobsEngine) -> list[dict[str, object]]:
    """Claims and settles the workloads that tell of the ends of trees, and returns their events."""
    leased = await engine.queue.lease(Demand({Cell(TOLD, 2): 100}, frozenset(), 100), LEASE, 0)
    if leased is None:
        return []
    assert not leased.jobs
    assert await engine.queue.settle(leased.fence, leased.ids, []) == []
    return [json.loads(payload)["event"] for payload in leased.payloads]


async def fill(engine: JobsEngine, tree: TreeSpec, *payloads: bytes, call: str = "call") -> None:
    """Adds items to a tree's first job."""
    await engine.jobs.add(tree.id, "", call, [JobItem(each) for each in payloads])


async def take(engine: JobsEngine, tree: TreeSpec, names: Sequence[str] = ()) -> Leased | None:
    """Claims the due items of a tree's jobs, or of the jobs named."""
    wanted = names or [each.name for each in tree.jobs]
    demand = Demand({Cell(f"{tree.id}:{name}", 2): 1000 for name in wanted}, frozenset(), 1000)
    return await engine.queue.lease(demand, LEASE, 0)


async def work(
    engine: JobsEngine, tree: TreeSpec, run: Callable[[str, bytes], bytes | None], rounds: int = 50
) -> list[tuple[str, bytes]]:
    """Runs everything of a tree: `run` is given a job's name and a payload, and returns the result, or None to fail.
    Returns the runs in order, by job and payload."""
    ran: list[tuple[str, bytes]] = []
    for _ in range(rounds):
        leased = await take(engine, tree)
        if leased is None:
            return ran
        ends = []
        for id, kind, payload in zip(leased.ids, leased.kinds, leased.payloads, strict=True):
            name = kind.function.rpartition(":")[2]
            ran.append((name, payload))
            result = run(name, payload)
            state = State.FATAL_FAILURE if result is None else State.SUCCESS
            ends.append(Settle(id, leased.fence, state, reason="" if result else "it fails", result=result))
        assert await engine.queue.settle(leased.fence, [], ends) == []
    raise AssertionError("work without end")


async def shown(engine: JobsEngine, tree: TreeSpec) -> TreeStatus:
    """Returns the status of a tree, after a check that its rows agree."""
    found = await engine.jobs.show(tree.id)
    assert found is not None, "the tree is not known"
    assert await engine.jobs.audit(tree.id) == []
    return found
