"""Refusals of jobs: errors, and checks of arguments, with the same texts on every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....model.did_you_mean import meant
from ....model.errors import Conflict, InvalidRequest, Overloaded
from ....model.job import JobHolder, JobItem, TreeSpec, TreeState
from ....model.name import EXPECTED, is_name
from .tree import check_key

#: Most open trees: each costs a few hundred bytes of memory once it is looked at, and a row in every listing.
MOST_OPEN = 100_000
#: The rooms that tenants share: for open trees, and for the bytes that trees keep.
ROOMS = ("open", "kept")
#: Most items of one call.
MOST_ITEMS = 10_000
#: Changes that can be made to a tree, and the right that is noted with the pause of a caller that gives none: anybody
#: who may do everything.
CHANGES = ("cancel", "pause", "resume", "delete")
HOLDS = {"pause": "operate", "resume": ""}


def job_path(tree: str, name: str) -> str:
    """The name of a job, or of the tree for its root, in messages."""
    return repr(f"{tree}/{name}" if name else tree)


def unknown(tree: str) -> InvalidRequest:
    """The error for a tree that is not known."""
    return InvalidRequest(
        f"no job {tree[:100]!r} is known: it was never made here, or was forgotten; `tailrace job list` shows all"
    )


def nameless(tree: str, name: str, there: str) -> InvalidRequest:
    """The error for a job name that the tree does not have."""
    return InvalidRequest(f"the tree {tree!r} has no job {name[:100]!r}: it has {there}")


def another(tree: str) -> Conflict:
    """The error for a tree id that another tree has."""
    return Conflict(f"the job {tree!r} exists already, with another definition: choose another id")


def key_taken(tree: TreeSpec, whose: str) -> Conflict:
    """The error for a key that another tree of the type has."""
    return Conflict(f"the job {whose!r} of the type {tree.type!r} has the key {tree.key[:100]!r} already")


def too_many(count: int) -> Overloaded:
    """The error for too many open trees."""
    return Overloaded(f"{count} jobs are open: at most {MOST_OPEN} may be; try again later", 5.0)


def full(kept: int, most: int) -> Overloaded:
    """The error for too many bytes in all known trees."""
    return Overloaded(
        f"jobs keep {kept} bytes of results and of payloads of failed items, and at most {most} are kept "
        "(job_bytes of stores.yaml): delete jobs that are over (`tailrace job delete ID`), or wait until the retention "
        "of some is over",
        5.0,
    )


def no_room(job: str, most: int) -> InvalidRequest:
    """The error for a job whose payloads have no room for a result."""
    return InvalidRequest(f"job {job!r}: a payload may have {most} bytes, too few for the name of an argument")


def over(tree: str, *, complete: bool) -> Conflict:
    """The error for an addition to a tree that ends or has ended."""
    return Conflict(
        f"the job {tree!r} {'is complete' if complete else 'ends'}: nothing can be added to it; make another one"
    )


def sealed(tree: str, name: str) -> Conflict:
    """The error for an addition to a sealed job."""
    return Conflict(f"the job {job_path(tree, name)} is sealed: nothing can be added to it; make another job")


def stale(holder: JobHolder) -> Conflict:
    """The error for an addition by a run that lost its item, or never had one of a job."""
    return Conflict(
        f"the run of workload {holder.workload[:40]} has no item of a job any more: its lease is over, and another run "
        "may have it; nothing was added"
    )


def elsewhere(holder: JobHolder, tree: str, name: str) -> InvalidRequest:
    """The error for an addition by a run to a job that is neither its own nor after its own."""
    return InvalidRequest(
        f"the run of workload {holder.workload[:40]} cannot add to {job_path(tree, name)}: a run adds to its own job "
        "and to jobs after it"
    )


def known_item(tree: str, name: str, key: str) -> Conflict:
    """The error for a dedupe key that an item of the job has."""
    return Conflict(
        f"an item of the job {job_path(tree, name)} has the dedupe key {key[:100]!r} already: no item was added"
    )


def sealed_by_parents(tree: str, name: str) -> InvalidRequest:
    """The error for sealing a job that is sealed by its parents."""
    return InvalidRequest(
        f"the job {job_path(tree, name)} comes after other jobs, and is sealed when they are complete: seal the first "
        "job"
    )


def not_over(tree: str) -> Conflict:
    """The error for another try of a tree that is not over."""
    return Conflict(f"the job {tree!r} is not over: wait for its end, or cancel it; then try its failed items again")


def no_redrive(tree: str, state: str) -> str:
    """The reason why an item of a tree cannot be redriven in it."""
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
    """The error for another try of a tree without failed items."""
    return InvalidRequest(f"no item of the job {tree!r} failed: there is nothing to try again")


def why_ends(policy: str, failed: int, most_failed: int) -> str:
    """The reason of a tree that its policy ends."""
    why = f"{failed} of its items failed, and its policy is {policy}"
    return why if policy == "fail_tree" else f"{why} of {most_failed}"


def reads_nothing(holder: JobHolder) -> Conflict:
    """The error for a run that asks for results to gather without having the item of a job that gathers."""
    return Conflict(
        f"the run of workload {holder.workload[:40]} has no item of a job that gathers (any more): its lease is over, "
        "and another run may have it; no results are sent"
    )


def gathers_no_more(holder: JobHolder) -> Conflict:
    """The error for results to gather that were removed with their tree."""
    return Conflict(
        f"the results that workload {holder.workload[:40]} gathers were removed with their job: run the job again"
    )


def check_names(tree: str, job: str = "", *, held: bool = False) -> None:
    """Raises InvalidRequest for a tree or job name that is not valid, because nothing can have it. With `held` the tree
    may be empty: the held item tells it."""
    if not is_name(tree) and not (held and not tree):
        raise unknown(tree)
    if job and not is_name(job):
        raise InvalidRequest(f"the tree {tree!r} has no job {job[:100]!r}: {EXPECTED}")


def check_holder(holder: JobHolder, refusal: Callable[[JobHolder], Conflict] = stale) -> int:
    """Returns the number of the item that a run holds. Raises Conflict (the refusal) if no item can have it."""
    workload, fence = holder
    number = int(workload, 16) if len(workload) == 16 and set(workload) <= set("0123456789abcdef") else 0
    if not 0 < number < 1 << 63 or not 0 < fence < 1 << 63:
        raise refusal(holder)
    return number


def check_id(id: str) -> None:
    """Raises InvalidRequest for a text that cannot be the id of a tree."""
    if not is_name(id):
        raise InvalidRequest(f"id of a job: {id[:100]!r}: {EXPECTED}")


def check_items(token: str, items: Sequence[JobItem]) -> None:
    """Raises InvalidRequest for an addition with a token that is not valid, too many items, or a key that no engine can
    index."""
    if not is_name(token):
        raise InvalidRequest(f"token of an addition: {token[:40]!r}: {EXPECTED}")
    if len(items) > MOST_ITEMS:
        raise InvalidRequest(f"{len(items)} items in one call: at most {MOST_ITEMS} are taken; make several calls")
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
    """Raises InvalidRequest for a change that does not exist."""
    if what not in CHANGES:
        raise InvalidRequest(f"change of a job: {what[:40]!r}: expected one of {', '.join(CHANGES)}")


def check_room(what: str) -> None:
    """Raises InvalidRequest for a room that trees do not have."""
    if what not in ROOMS:
        raise InvalidRequest(f"room of jobs: {what[:40]!r}: expected one of {', '.join(ROOMS)}")


def check_state(state: str) -> None:
    """Raises InvalidRequest for a text that is no state of a tree; empty stands for any."""
    if state and state not in list(TreeState):
        raise InvalidRequest(f"state is {state[:40]!r}: {meant(state[:40], list(TreeState))}")


def check_page(after: str) -> None:
    """Raises InvalidRequest for an `after` that no page of results returned."""
    if after and not (after.isascii() and after.replace(".", "").isalnum() and after.partition(".")[0].isdigit()):
        raise InvalidRequest(f"after is {after[:40]!r}: expected the `after` of a former page")
