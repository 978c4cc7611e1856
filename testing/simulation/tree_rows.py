"""Rows of trees of jobs, read from outside of every host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .plan_trees import TreePlan
from .sqlite_disk import Disk

#: States of an item.
PENDING, SUCCEEDED, FAILED = 0, 1, 2
#: States of a workload: from here on it has ended, and that of one that succeeded, failed, or was cancelled.
OVER, DONE, DIED, CANCELLED = 10, 10, 11, 12
_TREES = "SELECT tree, id, ending, paused, deleted, complete_at FROM job_trees"
_JOBS = "SELECT job, tree, name, sealed, pending, succeeded, failed, complete_at FROM jobs"
_ITEMS = (
    "SELECT i.item, i.job, i.origin, i.part, i.state, t.state FROM job_items AS i LEFT JOIN tasks AS t ON t.id = i.item"
)
_EXPANSIONS = "SELECT job, origin, next FROM job_expansions"


class TreeRow(NamedTuple):
    """A tree's row."""

    tree: int
    id: str
    ending: str
    paused: int
    deleted: int
    complete_at: int | None


class JobRow(NamedTuple):
    """A job's row."""

    job: int
    tree: int
    name: str
    sealed: int
    pending: int
    succeeded: int
    failed: int
    complete_at: int | None


class ItemRow(NamedTuple):
    """An item's row, and the state of its workload (None: there is none)."""

    item: int
    job: int
    origin: int | None
    part: int
    state: int
    task: int | None

    @property
    def id(self) -> str:
        """The id of its workload."""
        return f"{self.item:016x}"


class Grown(NamedTuple):
    """A tree as it stood, with its plan. `again`: whether it is the retry of another one."""

    row: TreeRow
    plan: TreePlan
    jobs: dict[int, JobRow]
    items: dict[int, ItemRow]
    apart: dict[tuple[int, int], int]  # by job and origin: the elements that became items

    @property
    def again(self) -> bool:
        """Whether it is the retry of another one, made of the items that failed there."""
        return self.row.id == self.plan.again

    def name(self, item: ItemRow) -> str:
        """The name of an item's job."""
        return self.jobs[item.job].name


def grown_in(disk: Disk, plans: Mapping[str, TreePlan]) -> dict[str, Grown]:
    """Reads all trees, by their ids; `plans` has the plan of each."""
    trees = [TreeRow(*each) for each in disk.rows("queue", _TREES)]
    if not trees:
        return {}
    apart = {(job, origin): next_ for job, origin, next_ in disk.rows("queue", _EXPANSIONS)}
    grown = {tree.tree: Grown(tree, plans[tree.id], {}, {}, apart) for tree in trees}
    home: dict[int, Grown] = {}
    for job in (JobRow(*each) for each in disk.rows("queue", _JOBS)):
        home[job.job] = grown[job.tree]
        grown[job.tree].jobs[job.job] = job
    for item in (ItemRow(*each) for each in disk.rows("queue", _ITEMS)):
        home[item.job].items[item.item] = item
    return {each.row.id: each for each in grown.values()}
