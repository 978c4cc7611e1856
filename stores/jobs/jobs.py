"""The protocol of jobs: trees of jobs whose results feed the next jobs. Jobs are stored where the queue is, because the
transaction that ends a parent's item also makes the child's item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from ...model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ...model.workload import Kind
from ..queue.counts import Held
from ..queue.intake import Callback


@dataclass(frozen=True, slots=True)
class Feeding:
    """The workloads of one job: their kind, and the bytes around a parent's result that make a payload of it. `most`:
    most bytes of a payload."""

    kind: Kind
    prefix: bytes = b""
    suffix: bytes = b""
    most: int = 4 << 20


class JobRedrives(Protocol):
    """Redrives of items that failed, in their own trees."""

    async def redrive(self, workloads: Sequence[str]) -> list[ItemRedrive]:
        """Makes failed items pending again, each with another workload, as long as their jobs are not complete. Answers
        are in the order of `workloads`; a repeated call gets the same answers. All or none are redriven: raises
        Overloaded."""


class JobGathers(Protocol):
    """Results for the item of a job that gathers, when they do not fit into its payload."""

    async def gathered(self, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
        """Returns the results of the items of the parent jobs, in their order, to the run that has the gathering item.
        The results stay until that item has ended, also if it is tried again in another tree. Raises Conflict for a run
        that has no such item."""


class JobLooks(Protocol):
    """Looks at trees."""

    async def show(self, tree: str, item: str = "") -> TreeStatus | None:
        """Returns one tree, by its id or by the workload of one of its items; None: it is not known."""

    async def still_open(self, trees: Sequence[str]) -> list[str]:
        """Returns those of these trees that are known and not over, in one read."""

    async def held(self, what: str) -> Held:
        """The room for `open` trees, or for the bytes that trees have `kept`, and who has it: tenants of trees, while
        more than half of it is taken. May take a second then."""

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        """Returns trees, the newest first; only those in `state` unless it is empty. `after`: the id of the tree after
        which to go on."""


class Jobs(JobLooks, JobRedrives, JobGathers, Protocol):
    """Trees of jobs. Every call may be repeated, and takes effect once. All raise InvalidRequest for a tree or job that
    does not exist."""

    async def create(self, tree: TreeSpec, feedings: Sequence[Feeding], done: Callback | None = None) -> bool:
        """Makes a tree, and returns True if it is new. `feedings` has one for each job, in the order of the tree.
        `done`: a workload with the event of the tree's end (`rules/callback.py`), made by the transaction that
        completes the tree. Raises InvalidRequest for a tree that is not valid, and Conflict for a key that another tree
        of the type has."""

    async def add(
        self, tree: str, job: str, token: str, items: Sequence[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Adds items to a job, all or none, and returns how many. A repeated `token` adds nothing again. `holder`: the
        run of an item of the tree that adds them, to its own job (no name) or to one that comes after it, sealed or
        not, because neither can be complete before the run ends. Raises Conflict for a sealed job, a known dedupe key
        and a run that lost its item; Overloaded; InvalidPayload."""

    async def seal(self, tree: str, job: str) -> bool:
        """Seals a job: nothing can be added from now on. Returns True if it was open. A job that has parents is sealed
        when they complete."""

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        """Returns the results of ended items of final jobs, in their order."""

    async def change(self, tree: str, what: str, why: str) -> str:
        """Does `cancel` or `delete`, or what `hold` does with no right noted: `pause` or `resume`. Answers `done`, or
        `over` if nothing could be done."""

    async def hold(self, tree: str, right: str, seen: str | None) -> str:
        """Pauses a tree and notes the right with which it is paused, in place of the noted one; resumes it where
        `right` is empty. Answers `done`, or `over` if nothing could be done; `moved` where the noted right is not the
        one that was `seen` (None: whatever it is), and nothing was changed."""

    async def retry(self, tree: str, id: str, who: str) -> TreeRetry:
        """Makes another tree, with this id, of a tree's failed items, and seals it. A repeated call goes on where the
        last one stopped, also with another id while the tree that was begun is open; the answer has that tree's id.
        Raises Conflict for a tree that is not over, and InvalidRequest if nothing failed."""

    async def audit(self, tree: str) -> list[str]:
        """Returns contradictions between a tree's rows: none, unless somebody else changed rows."""


class JobEventRow(NamedTuple):
    """An event that is not in its stream yet: its number, its bit (`rules/events.py`), its tree, and its bytes."""

    number: int
    bit: int
    tree: str
    payload: bytes


@runtime_checkable
class JobOutbox(Protocol):
    """Events of trees, written in the transactions that they tell of, and stored until they are in a stream."""

    async def take_events(self, limit: int, seconds: float) -> list[JobEventRow]:
        """Takes the oldest events that no other caller has taken; they belong to this one for so many seconds."""

    async def forget_events(self, numbers: Sequence[int]) -> None:
        """Removes events that are in their streams."""
