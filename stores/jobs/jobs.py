"""The protocol of jobs: trees whose jobs feed each other, kept where the queue is, since a child's item is made in the
transaction that ends its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from ...model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ...model.workload import Kind
from ..queue.intake import Callback


@dataclass(frozen=True, slots=True)
class Feeding:
    """The workloads of one job: their kind, and the bytes around a parent's result that make a payload of it. `most`:
    bytes of a payload."""

    kind: Kind
    prefix: bytes = b""
    suffix: bytes = b""
    most: int = 4 << 20


class JobRedrives(Protocol):
    """Redrives of items that failed, in their own trees."""

    async def redrive(self, workloads: Sequence[str]) -> list[ItemRedrive]:
        """Makes items that failed pend again, each with another workload, while their jobs are not complete; the
        answers in the order of what is asked. Asked again, the answer is the same. All or none: raises Overloaded."""


class JobGathers(Protocol):
    """Results that an item of a job that gathers gets, where they fit no payload."""

    async def gathered(self, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
        """What became of the items of the jobs before it, in their order, to the run that has it. They rest until it
        has ended, also where it is tried again in another tree. Raises Conflict for a run that has no such item."""


class Jobs(JobRedrives, JobGathers, Protocol):
    """Trees of jobs. What is asked for may be asked again: it is done once. All raise InvalidRequest for what is not
    there."""

    async def create(self, tree: TreeSpec, feedings: Sequence[Feeding], done: Callback | None = None) -> bool:
        """Makes a tree; `feedings` are its jobs' in their order. `done`: a workload that is made with the event of its
        end (`rules/callback.py`), in the transaction that completes it. Whether it is new. Raises InvalidRequest for
        what is no tree, Conflict for a key of the type that another tree has."""

    async def add(
        self, tree: str, job: str, token: str, items: Sequence[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Adds items to a job, all or none; how many. A call whose `token` was heard adds nothing again. `holder`: they
        are added by a run of an item of the tree, to its own job (without a name) or one that comes after it, sealed
        or not, since neither can be complete before the run ends. Raises Conflict for a sealed job, a known dedupe key
        and a run that lost its item, Overloaded, InvalidPayload."""

    async def seal(self, tree: str, job: str) -> bool:
        """From now on nothing can be added; whether it was open. A job that has parents is sealed by them."""

    async def show(self, tree: str, item: str = "") -> TreeStatus | None:
        """One tree, by its id or by the workload of one of its items; None: it is not known."""

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        """Trees, the newest first; of a state unless it is empty. `after`: go on behind this one."""

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        """What became of the items of final jobs that have ended, in their order."""

    async def change(self, tree: str, what: str, why: str) -> str:
        """Does `cancel`, `pause`, `resume` or `delete`. Answers `done`, or `over`: there was nothing to be done."""

    async def retry(self, tree: str, id: str, who: str) -> TreeRetry:
        """Makes another tree of this one's failed items, with this id, and seals it. Asked again, it goes on where it
        was; with another id too, while the tree that was begun is open, whose id the answer has. Raises Conflict for a
        tree that is not over, InvalidRequest where nothing failed."""

    async def audit(self, tree: str) -> list[str]:
        """What of a tree does not agree with itself: nothing, unless rows were changed by somebody else."""


class JobEventRow(NamedTuple):
    """An event that no stream has yet: its number, its bit (`rules/events.py`), the tree that it is of, and its
    bytes."""

    number: int
    bit: int
    tree: str
    payload: bytes


@runtime_checkable
class JobOutbox(Protocol):
    """Events of trees, written in the transactions that they tell of, until a stream has them."""

    async def take_events(self, limit: int, seconds: float) -> list[JobEventRow]:
        """The oldest events that nobody else has taken; they are the caller's for so many seconds."""

    async def forget_events(self, numbers: Sequence[int]) -> None:
        """Forgets events that are in their streams."""
