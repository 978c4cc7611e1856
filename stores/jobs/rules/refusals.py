"""Refusals of jobs: what is told of each thing that cannot be done with a tree, the same on every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....model.did_you_mean import meant
from ....model.errors import Conflict, InvalidRequest, Overloaded
from ....model.job import JobHolder, JobItem, TreeSpec, TreeState
from ....model.name import EXPECTED, is_name
from .tree import check_key

#: Open trees: each costs a few hundred bytes of memory once it is looked at, and a row of every listing.
MOST_OPEN = 100_000
#: Items of one call.
MOST_ITEMS = 10_000
#: What may be done with a tree.
CHANGES = ("cancel", "pause", "resume", "delete")


def said(tree: str, name: str) -> str:
    """A job of a tree, or the tree's root, as messages name it."""
    return repr(f"{tree}/{name}" if name else tree)


def unknown(tree: str) -> InvalidRequest:
    """No tree has this id."""
    return InvalidRequest(
        f"no job {tree[:100]!r} is known: it was never made here, or was forgotten; `tailrace job list` shows all"
    )


def nameless(tree: str, name: str, there: str) -> InvalidRequest:
    """The tree has no job of this name."""
    return InvalidRequest(f"the tree {tree!r} has no job {name[:100]!r}: it has {there}")


def another(tree: str) -> Conflict:
    """There is another tree of this id."""
    return Conflict(f"there is a job {tree!r} already, and it is another one: make it with an id of its own")


def key_taken(tree: TreeSpec, whose: str) -> Conflict:
    """Another tree of its type has its key."""
    return Conflict(f"the job {whose!r} of the type {tree.type!r} has the key {tree.key[:100]!r} already")


def too_many(count: int) -> Overloaded:
    """There is no room for another open tree."""
    return Overloaded(f"{count} jobs are open, and at most {MOST_OPEN} may be; try again later", 5.0)


def full(kept: int, most: int) -> Overloaded:
    """The trees that are known keep too much."""
    return Overloaded(
        f"jobs keep {kept} bytes of results and of what failed items were given, and at most {most} are kept "
        "(job_bytes of stores.yaml): delete jobs that are over (`tailrace job delete ID`), or wait until some are "
        "forgotten",
        5.0,
    )


def no_room(job: str, most: int) -> InvalidRequest:
    """The bytes around a result leave none for it."""
    return InvalidRequest(f"job {job!r}: a payload may have {most} bytes, too few for the name of an argument")


def over(tree: str, *, complete: bool) -> Conflict:
    """Nothing can be added to a tree that ends or has ended."""
    return Conflict(
        f"the job {tree!r} {'is complete' if complete else 'ends'}: nothing can be added to it; make another one"
    )


def sealed(tree: str, name: str) -> Conflict:
    """Nothing can be added to a sealed job."""
    return Conflict(f"the job {said(tree, name)} is sealed: nothing can be added to it; make another job")


def stale(holder: JobHolder) -> Conflict:
    """A run that lost its item, or has none of a job, adds nothing."""
    return Conflict(
        f"the run of {holder.workload[:40]} has no item of a job any more: its lease is over, and another run may have "
        "it; nothing was added"
    )


def elsewhere(holder: JobHolder, tree: str, name: str) -> InvalidRequest:
    """A run adds to its own job and to those after it."""
    return InvalidRequest(
        f"the run of {holder.workload[:40]} cannot add to {said(tree, name)}: only to its own job, and to those that "
        "come after it"
    )


def known_item(tree: str, name: str, key: str) -> Conflict:
    """An item of the job has this dedupe key."""
    return Conflict(f"an item of the job {said(tree, name)} has the dedupe key {key[:100]!r} already: none was added")


def sealed_by_parents(tree: str, name: str) -> InvalidRequest:
    """A job that comes after others is sealed by them alone."""
    return InvalidRequest(
        f"the job {said(tree, name)} comes after others, and is sealed when these are complete: seal the first one"
    )


def not_over(tree: str) -> Conflict:
    """Only what has ended is tried again."""
    return Conflict(f"the job {tree!r} is not over: wait for it, or cancel it, and then try its failed items again")


def no_redrive(tree: str, state: str) -> str:
    """The reason why an item of a tree is not tried again where it is."""
    match state:
        case "pending":
            return f"it is an item of the job {tree!r} that has not ended: try again in a moment"
        case "succeeded":
            return f"it is an item of the job {tree!r} that succeeded by itself: purge the letter"
        case "complete":
            return (
                f"it is an item of the job {tree!r}, which is complete: `tailrace job retry {tree}` starts a new tree "
                "of its failed items"
            )
        case _:
            return f"it is an item of the job {tree!r}, which ends: `tailrace job retry {tree}` once it is over"


def none_failed(tree: str) -> InvalidRequest:
    """There is nothing to be tried again."""
    return InvalidRequest(f"no item of the job {tree!r} failed: there is nothing to be tried again")


def why_ends(policy: str, failed: int, most_failed: int) -> str:
    """The reason of a tree that its policy ends."""
    why = f"{failed} of its items failed, and its policy is {policy}"
    return why if policy == "fail_tree" else f"{why} of {most_failed}"


def reads_nothing(holder: JobHolder) -> Conflict:
    """A run that has no item of a job that gathers reads no results of the jobs before it."""
    return Conflict(
        f"the run of {holder.workload[:40]} has no item of a job that gathers (any more): its lease is over, and "
        "another run may have it; it gets no results"
    )


def gathers_no_more(holder: JobHolder) -> Conflict:
    """The results of an item that gathers are gone with their tree."""
    return Conflict(f"the tree whose results the item {holder.workload[:40]} gathers is forgotten: run it anew")


def check_names(tree: str, job: str = "", *, held: bool = False) -> None:
    """What is no name is nobody's; who holds an item need not name its tree. Raises InvalidRequest."""
    if not is_name(tree) and not (held and not tree):
        raise unknown(tree)
    if job and not is_name(job):
        raise InvalidRequest(f"the tree {tree!r} has no job {job[:100]!r}: {EXPECTED}")


def check_holder(holder: JobHolder, refusal: Callable[[JobHolder], Conflict] = stale) -> int:
    """The number of the item that a run holds. Raises Conflict (the refusal) for what can be none."""
    workload, fence = holder
    number = int(workload, 16) if len(workload) == 16 and set(workload) <= set("0123456789abcdef") else 0
    if not 0 < number < 1 << 63 or not 0 < fence < 1 << 63:
        raise refusal(holder)
    return number


def check_id(id: str) -> None:
    """Raises InvalidRequest for what cannot be the id of a tree."""
    if not is_name(id):
        raise InvalidRequest(f"the id of a job is {id[:100]!r}: {EXPECTED}")


def check_items(token: str, items: Sequence[JobItem]) -> None:
    """Raises InvalidRequest for an addition that cannot be told from others, or is too large."""
    if not is_name(token):
        raise InvalidRequest(f"the token of an addition is {token[:40]!r}: {EXPECTED}")
    if len(items) > MOST_ITEMS:
        raise InvalidRequest(f"{len(items)} items in one call: at most {MOST_ITEMS} are taken; send several")
    for each in items:
        check_key("the dedupe key of an item", each.dedupe_key)


def twice(items: Sequence[JobItem]) -> str | None:
    """The first dedupe key that two of these items have."""
    keys = [each.dedupe_key for each in items if each.dedupe_key]
    if len(set(keys)) == len(keys):
        return None
    found: set[str] = set()
    return next(key for key in keys if key in found or found.add(key))  # type: ignore[func-returns-value]


def check_change(what: str) -> None:
    """Raises InvalidRequest for what cannot be done."""
    if what not in CHANGES:
        raise InvalidRequest(f"a job cannot {what[:40]!r}: expected one of {', '.join(CHANGES)}")


def check_state(state: str) -> None:
    """Raises InvalidRequest for what is no state of a tree; empty: any."""
    if state and state not in list(TreeState):
        raise InvalidRequest(f"state is {state[:40]!r}: {meant(state[:40], list(TreeState))}")


def check_page(after: str) -> None:
    """Raises InvalidRequest for what no page of results said."""
    if after and not (after.isascii() and after.replace(".", "").isalnum() and after.partition(".")[0].isdigit()):
        raise InvalidRequest(f"after is {after[:40]!r}: expected the `after` of a former page")
