"""The shape of a tree of jobs: THE rule of which trees can be made. The shape is fixed when a tree is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ....model.did_you_mean import meant
from ....model.errors import InvalidRequest
from ....model.job import JobEvent, JobSpec, Policy, TreeSpec
from ....model.name import EXPECTED, NAME_LENGTH, check_not_reserved, is_name

#: Most jobs of one tree, and of one path through it: ending a tree looks at each.
MOST_JOBS, MOST_DEPTH = 256, 100
#: Most bytes of the key of a tree or an item: every engine can index so many.
LONGEST_KEY = 1000
#: Most failures of one item that a job may allow; a function's `max_attempts` has the same bound.
MOST_FAILURES = 10_000


_encode = msgspec.json.Encoder().encode


def defined(tree: TreeSpec) -> str:
    """The definition of a tree, as JSON: a repeated request is recognised by it."""
    told = [tree.on_done] if tree.on_done or tree.events else []
    told += [",".join(sorted(tree.events))] if tree.events else []
    jobs = [msgspec.to_builtins(job) for job in tree.jobs]
    for job in jobs:  # as definitions were before this field existed
        if not job["max_failures_per_item"]:
            del job["max_failures_per_item"]
    return _encode((tree.type, tree.key, tree.policy, tree.most_failed, jobs, *told)).decode()


def check(tree: TreeSpec) -> None:
    """Raises InvalidRequest for a tree that is not valid, with the job and what to do."""
    for what, text in (("id", tree.id), ("type", tree.type)):
        if not is_name(text):
            raise InvalidRequest(f"the {what} of a job is {text[:NAME_LENGTH]!r}: {EXPECTED}")
    check_key("the key of a job", tree.key)
    if tree.policy not in list(Policy):
        raise InvalidRequest(f"policy is {tree.policy[:40]!r}: {meant(tree.policy[:40], list(Policy))}")
    if tree.most_failed < 0:
        raise InvalidRequest(f"most_failed is {tree.most_failed}: expected 0 or more failed items")
    for event in tree.events:
        if event not in list(JobEvent):
            raise InvalidRequest(f"events has {event[:40]!r}: {meant(event[:40], list(JobEvent))}")
    if not 1 <= len(tree.jobs) <= MOST_JOBS:
        raise InvalidRequest(f"{len(tree.jobs)} jobs in one tree: expected 1 to {MOST_JOBS}; make several trees")
    _check_names(tree.jobs)
    _check_roots(tree.jobs)
    for job in tree.jobs:
        check_not_reserved(f"job {job.name!r}: function", job.function)
        if job.gather and job.each:
            raise InvalidRequest(f"job {job.name!r} has gather and each: it gets one item or many; choose one of them")
        if not 0 <= job.max_failures_per_item <= MOST_FAILURES:
            raise InvalidRequest(
                f"job {job.name!r}: max_failures_per_item is {job.max_failures_per_item}: expected 1 to "
                f"{MOST_FAILURES}, or 0 for as many as its function allows"
            )
    depths(tree.jobs)


def check_key(what: str, key: str) -> None:
    """Raises InvalidRequest for a key that no engine can index."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        text = f"{what} has half a character (a lone surrogate): use another key, such as a hash of it"
        raise InvalidRequest(text) from None
    if size > LONGEST_KEY or "\0" in key:
        found = "a NUL" if "\0" in key else f"{size} bytes"
        raise InvalidRequest(f"{what} has {found}: expected at most {LONGEST_KEY} bytes without NUL; use a hash of it")


def _check_names(jobs: Sequence[JobSpec]) -> None:
    names = dict.fromkeys(job.name for job in jobs)
    for job in jobs:
        if not is_name(job.name):
            raise InvalidRequest(f"a job of the tree is called {job.name[:NAME_LENGTH]!r}: {EXPECTED}")
    if len(names) < len(jobs):
        twice, _ = Counter(job.name for job in jobs).most_common(1)[0]
        raise InvalidRequest(f"two jobs of the tree are called {twice!r}: give one of them another name")
    for job in jobs:
        if len(job.parents) >= len(jobs):
            raise InvalidRequest(
                f"job {job.name!r} comes after {len(job.parents)} jobs, and the tree has {len(jobs) - 1} others: name "
                "each parent once"
            )
        for parent in job.parents:
            if parent not in names:
                raise InvalidRequest(
                    f"job {job.name!r} comes after {parent[:NAME_LENGTH]!r}, which the tree does not have: "
                    f"{meant(parent[:NAME_LENGTH], [*names])}"
                )
        if len(set(job.parents)) < len(job.parents):
            raise InvalidRequest(f"job {job.name!r} names a parent twice: name each once")


def _check_roots(jobs: Sequence[JobSpec]) -> None:
    if jobs[0].parents:
        raise InvalidRequest(f"the first job of a tree is its root, and {jobs[0].name!r} comes after another")
    for job in jobs[1:]:
        if not job.parents:
            raise InvalidRequest(f"job {job.name!r} comes after none: only the first job of a tree is its root")


def depths(jobs: Sequence[JobSpec]) -> dict[str, int]:
    """Number of jobs before each job, on the longest path. Raises InvalidRequest for a cycle, and for a tree that is
    too deep."""
    found: dict[str, int] = {}
    left = list(jobs)
    while left:
        ready = [job for job in left if all(parent in found for parent in job.parents)]
        if not ready:
            names = ", ".join(repr(job.name) for job in left[:5])
            raise InvalidRequest(f"the jobs {names} wait for each other: a tree has no cycle; leave one `parents` out")
        for job in ready:
            found[job.name] = 1 + max((found[parent] for parent in job.parents), default=-1)
            if found[job.name] >= MOST_DEPTH:
                raise InvalidRequest(
                    f"job {job.name!r} has {MOST_DEPTH} jobs before it: a tree may be at most {MOST_DEPTH} jobs deep"
                )
        left = [job for job in left if job.name not in found]
    return found


def is_final(job: JobSpec, jobs: Sequence[JobSpec]) -> bool:
    """Whether a job's results are the tree's: as the job says, and otherwise if no job comes after it."""
    return not any(job.name in other.parents for other in jobs) if job.final is None else job.final
