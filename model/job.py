"""Jobs: containers of items handled alike, in a tree whose jobs feed each other; what is asked for and what it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Policy(StrEnum):
    """The effect of a failed item on its tree.

    continue   it makes no item for the next jobs, and the others go on
    fail_tree  it ends the tree: what waits is cancelled
    threshold  the same once more than `most_failed` items of the tree have failed
    """

    CONTINUE = "continue"
    FAIL_TREE = "fail_tree"
    THRESHOLD = "threshold"


class JobEvent(StrEnum):
    """Events that a tree tells of while it runs, where it is asked to: records of streams of the embedded log."""

    ITEM_SUCCEEDED = "item_succeeded"
    ITEM_FAILED = "item_failed"
    JOB_COMPLETED = "job_completed"


class TreeState(StrEnum):
    """The state of a whole tree: open, paused, ending before its time, or over."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDING = "ending"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: States in which nothing of a tree runs any more.
OVER = frozenset({TreeState.COMPLETE, TreeState.FAILED, TreeState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job of a tree, before it is made.

    name      what it is called in its tree; the first job of a tree is its root
    parents   the jobs whose results become its items; the root has none
    argument  the parameter that gets a parent's result; empty: the function's first one, or only one
    final     its results are the tree's; None: when no job comes after it
    gather    it gets one item, with all results of its parents as a list, once these are complete
    each      a parent's result is a list, and each element of it becomes an item
    max_failures_per_item  an item is a dead letter after so many failures, where its function would try it more often;
              0: as its function says
    """

    name: str
    function: str
    parents: tuple[str, ...] = ()
    argument: str = ""
    final: bool | None = None
    gather: bool = False
    each: bool = False
    priority: int | None = None
    collection: str = ""
    tenant: str = ""
    max_failures_per_item: int = 0


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A tree of jobs, before it is made.

    id    drawn by who asks, so that asking again makes no second one
    type  what the tree is, for people and for `key`
    key   of one type no two trees have the same, until the first is forgotten; empty: none
    on_done  what is told once it is over: a function's name, or an https URL; empty: nobody
    events   the JobEvents that are told of each item and job of it
    """

    id: str
    type: str
    jobs: list[JobSpec]
    key: str = ""
    policy: str = Policy.CONTINUE
    most_failed: int = 0
    created_by: str = ""
    on_done: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobItem:
    """An item to be added to a job. `key`: at most one of a key runs at a time; `dedupe_key`: no second item of the job
    may have it; empty: none."""

    payload: bytes
    key: str = ""
    dedupe_key: str = ""


class JobHolder(NamedTuple):
    """A run of an item, which may add others while it has it: its workload's id, and the fence of its hand-out."""

    workload: str
    fence: int


class ItemRedrive(NamedTuple):
    """The answer to a redrive of one item: the workload that it has from now on, or why it has none; neither: the
    workload asked about is that of no item."""

    workload: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class TreeRetry:
    """Another try of the failed items of a tree: the id of its tree, which may have been begun under another id than
    was asked for, and how many items that has of the former one. `anew`: its jobs that gather only results of this try,
    since items before them had failed."""

    id: str
    items: int
    anew: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job of a tree, and how its items stand. `complete_at`: wall clock seconds; 0: it is not. `collection` and
    `tenant` are those of its items."""

    name: str
    function: str
    parents: list[str]
    final: bool
    sealed: bool
    pending: int = 0
    succeeded: int = 0
    failed: int = 0
    complete_at: float = 0.0
    gather: bool = False
    each: bool = False
    collection: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """A tree, and how its jobs stand. `why`: what ended it before its time. `job_of_item`: where it was asked for by
    one of its items, that item's job. `anew`: in the answer to another try, as of a TreeRetry. `paused_with`: of one
    that is paused, the right with which it was, as text; empty: it was not noted."""

    id: str
    type: str
    key: str
    state: str
    policy: str
    created_by: str
    created_at: float
    complete_at: float = 0.0
    why: str = ""
    jobs: list[JobStatus] = field(default_factory=list)
    job_of_item: str = ""
    anew: list[str] = field(default_factory=list)
    paused_with: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in OVER

    @property
    def pending(self) -> int:
        """Items that have not ended."""
        return sum(each.pending for each in self.jobs)

    @property
    def succeeded(self) -> int:
        """Items that succeeded."""
        return sum(each.succeeded for each in self.jobs)

    @property
    def failed(self) -> int:
        """Items that failed, were dropped or cancelled, or expired."""
        return sum(each.failed for each in self.jobs)


class JobResult(NamedTuple):
    """The end of one item of a final job. `result` is empty for one that failed; `reason` says why."""

    item: str
    job: str
    succeeded: bool
    result: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TreePage:
    """Some trees, and behind which one to go on, whether or not it is among them; empty: there are no more."""

    trees: list[TreeStatus] = field(default_factory=list)
    after: str = ""


class ResultPage(NamedTuple):
    """Some results, and behind which item to go on; empty: there are no more."""

    results: list[JobResult]
    after: str = ""
