"""The end of jobs and trees: when a job is sealed and when it is complete, and the effect of failed items on their
tree."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ....model.job import Policy, TreeState


class JobStands(NamedTuple):
    """The state of a job's row. `open_parents`: parents that are not complete; `ending`: the tree ends before its
    time."""

    sealed: bool
    pending: int
    complete: bool
    has_parents: bool
    open_parents: int
    gathers: bool
    ending: bool


class JobStep(Enum):
    """The next step of a job. Each is a transaction of its own."""

    NOTHING = "nothing"
    SEAL = "seal"
    GATHER_AND_SEAL = "gather"
    COMPLETE = "complete"


def next_step(job: JobStands) -> JobStep:
    """The step that a job needs now. A job that has parents is sealed only when all of them are complete. A job is
    complete when it is sealed, none of its items is pending, and no parent can make more; that is final."""
    if job.complete:
        return JobStep.NOTHING
    if job.ending and not job.sealed:
        return JobStep.SEAL
    if not job.sealed and job.has_parents and not job.open_parents:
        return JobStep.GATHER_AND_SEAL if job.gathers else JobStep.SEAL
    if job.sealed and job.pending == 0 and not job.open_parents:
        return JobStep.COMPLETE
    return JobStep.NOTHING


def ends_tree(policy: str, most_failed: int, failed: int) -> bool:
    """Whether a tree ends before its time because so many items failed."""
    if policy == Policy.FAIL_TREE:
        return failed > 0
    return policy == Policy.THRESHOLD and failed > most_failed


def state_of(ending: str, paused: bool, complete: bool) -> TreeState:
    """The state of a tree. `ending`: the state in which it is to end before its time; empty: it is not to end early."""
    if complete:
        return TreeState(ending) if ending else TreeState.COMPLETE
    if ending:
        return TreeState.ENDING
    return TreeState.PAUSED if paused else TreeState.RUNNING
