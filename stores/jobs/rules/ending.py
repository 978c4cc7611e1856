"""The end of jobs and trees: when a job is sealed, when it is complete, and what a failed item does to its tree."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ....model.job import Policy, TreeState


class JobStands(NamedTuple):
    """A job as its row says. `open_parents`: those that are not complete; `ending`: its tree ends before its time."""

    sealed: bool
    pending: int
    complete: bool
    has_parents: bool
    open_parents: int
    gathers: bool
    ending: bool


class JobStep(Enum):
    """The next thing to be done with a job. One at a time, so that each is a step of its own."""

    NOTHING = "nothing"
    SEAL = "seal"
    GATHER_AND_SEAL = "gather"
    COMPLETE = "complete"


def next_step(job: JobStands) -> JobStep:
    """What a job needs now. Only parents seal a job that has some, when all of them are complete; complete = sealed,
    and nothing pending nor to come from a parent; it is final."""
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
    """Whether a tree of which so many items failed ends before its time."""
    if policy == Policy.FAIL_TREE:
        return failed > 0
    return policy == Policy.THRESHOLD and failed > most_failed


def state_of(ending: str, paused: bool, complete: bool) -> TreeState:
    """A tree's state. `ending`: the state in which it is to end before its time; empty: it is not to."""
    if complete:
        return TreeState(ending) if ending else TreeState.COMPLETE
    if ending:
        return TreeState.ENDING
    return TreeState.PAUSED if paused else TreeState.RUNNING
