"""The trees of a plan: their jobs, every item that there can be of them, and the requests about them with their
times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .deed import OK, Deed

#: The job that a tree's callback counts as.
TOLD = "told"


class InnerAdd(NamedTuple):
    """An addition by a run of an item: the item `n` of a job of its tree."""

    job: str
    n: int


@dataclass(frozen=True, slots=True)
class BranchItem:
    """An item that a tree may come to have; `n` is its own among all items of the plan. It is made of what the item
    `origin` returned (-1: of none), as the element `part` of that, or is added.

    deeds   by execution; those after the last one succeed. Executions in all trees count that have this item
    width   elements of the list that it returns
    fat     no payload has room for any of them
    odd     it returns no list
    adds    the additions that each of its runs makes, in this order
    key     of those with a key one runs at a time
    """

    n: int
    job: str
    origin: int = -1
    part: int = 0
    deeds: tuple[Deed, ...] = ()
    width: int = 1
    fat: bool = False
    odd: bool = False
    adds: tuple[InnerAdd, ...] = ()
    key: str = ""

    def deed(self, execution: int) -> Deed:
        """The deed of its execution number `execution` (from 0)."""
        return self.deeds[execution] if execution < len(self.deeds) else OK

    @property
    def result(self) -> Any:
        """The result: a list that has each part's identity, or a number if it is `odd`."""
        if self.odd:
            return self.n
        return [[self.n, part, PAD] if self.fat else [self.n, part] for part in range(self.width)]


#: Bytes of a payload that is made of a result, and what has no room in it.
MOST = 300
PAD = "x" * MOST
#: The same of a payload that has all results of a job, and of one in a narrow tree.
MOST_GATHERED, MOST_NARROW = 1 << 20, 30


class TreeJob(NamedTuple):
    """A job of a tree, as JobSpec has it."""

    name: str
    parents: tuple[str, ...] = ()
    gather: bool = False
    each: bool = False


class RootCall(NamedTuple):
    """An addition of these items to the root of a tree, in one call, `at` true seconds."""

    at: float
    ns: tuple[int, ...]


class TreeAsk(NamedTuple):
    """A request of the operator `at` true seconds: pause, resume, cancel or delete."""

    at: float
    what: str


@dataclass(frozen=True)
class TreePlan:
    """A tree, made `at` true seconds and sealed `seal` true seconds; both are a client's. `retry`: how many seconds
    after its end another tree is asked for of what failed (0: none is). `told`: the item that hears of its end; -1:
    none does. `redrives`: true seconds at which what failed until then is to have another life in this tree. `narrow`:
    hardly any results that are gathered fit a payload."""

    k: int
    at: float
    jobs: tuple[TreeJob, ...]
    items: tuple[BranchItem, ...]
    calls: tuple[RootCall, ...]
    seal: float
    asks: tuple[TreeAsk, ...] = ()
    policy: str = "continue"
    most_failed: int = 0
    retry: float = 0.0
    told: int = -1
    redrives: tuple[float, ...] = ()
    narrow: bool = False

    @property
    def id(self) -> str:
        """The tree's id in the store."""
        return f"tree{self.k}"

    @property
    def again(self) -> str:
        """The id of the tree that is made of the items that fail in this one."""
        return f"tree{self.k}-again"

    @cached_property
    def job(self) -> dict[str, TreeJob]:
        """The tree's jobs by name."""
        return {each.name: each for each in self.jobs}

    def fed_by(self, job: str) -> list[TreeJob]:
        """The jobs whose items are made of a job's results, one by one."""
        return [each for each in self.jobs if job in each.parents and not each.gather]

    def behind(self, job: str) -> list[str]:
        """The jobs that come after one, at any distance."""
        found = {job}
        for each in self.jobs:  # parents come first
            if found & {*each.parents}:
                found.add(each.name)
        return [each.name for each in self.jobs if each.name in found and each.name != job]

    def gathers(self, job: str) -> bool:
        """Whether a job's results are gathered."""
        return any(job in each.parents and each.gather for each in self.jobs)

    def unfit(self, item: BranchItem) -> bool:
        """Whether no item can be made of an item's result, though some are to be."""
        fed = self.fed_by(item.job)
        return (item.fat and item.width > 0 and bool(fed)) or (item.odd and any(each.each for each in fed))
