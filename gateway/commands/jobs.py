"""The commands `tailrace job …`: trees of items that feed each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.clock import SYSTEM_CLOCK
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.errors import InvalidRequest, Unavailable
from ...model.job import TreePage
from ...sdk import found_gateway
from ..rules.job_outlook import outlook

if TYPE_CHECKING:
    from ...model.job import JobStatus, TreeStatus
    from ...wire.gateway import GatewayClient

COLUMNS = ["id", "type", "state", "jobs", "pending", "succeeded", "failed", "created_at", "complete_at"]
JOB_COLUMNS = ["job", "function", "after", "sealed", "pending", "succeeded", "failed", "complete_at"]
#: Results of one answer, and results that are shown by default.
PAGE, SHOWN = 1000, 1000
#: Most jobs of one list, and of one page that the gateway looks through.
LISTED = 200

job = typer.Typer(help="Jobs: items whose results become further items.", no_args_is_help=True, rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="ID", help="The job's id, as `tailrace job list` shows it.")]


@job.command("list")
def job_list(
    state: Annotated[str, typer.Option("--state", help="Only jobs in this state.")] = "",
    after: Annotated[str, typer.Option("--after", metavar="ID", help="Go on after this job.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=LISTED, help="At most so many.")] = 50,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Jobs, the newest first."""
    found = found_gateway.ask(gateway, lambda client: _listed(client, state, after, limit))
    rows = [_row(each) for each in found.trees]
    terminal.show(rows, COLUMNS, as_json, empty="there are no jobs" + (f" that are {state}" if state else ""))
    if found.after and not as_json:
        terminal.complain(f"there may be more: --after {found.after}")


async def _listed(client: GatewayClient, state: str, after: str, limit: int) -> TreePage:
    """Up to `limit` jobs, on as many pages as that takes, since the caller may not read all jobs."""
    try:
        found = await client.job_page(state, after, limit)
    except InvalidRequest:  # a gateway of the version before knows no pages
        return TreePage(await client.jobs(state, after, limit))
    while found.after and len(found.trees) < limit:
        page = await client.job_page(state, found.after, LISTED)
        trees = [*found.trees, *page.trees]
        found = TreePage(trees[:limit], trees[limit - 1].id if len(trees) > limit else page.after)
    return found


@job.command()
def show(
    id: Id,
    tree: Annotated[bool, typer.Option("--tree", help="Draw which job comes after which.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw it as a picture.")] = None,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """One job with all that comes after it: how their items stand, how many are still to come, when they may be done by
    the pace so far, and which jobs the tree waits on."""
    found = found_gateway.ask(gateway, lambda client: client.job(id))
    if svg is not None:
        _draw(found, svg)
    rows = [_job_row(each) for each in found.jobs]
    ahead = outlook(found, SYSTEM_CLOCK.wall())
    if as_json:
        terminal.show_json({**_row(found), "jobs": rows, "outlook": ahead._asdict()})
        return
    facts = _row(found)
    del facts["jobs"]
    if not found.over:
        facts["to come"] = f"{ahead.left} items" + ("" if ahead.seconds is None else f", about {_span(ahead.seconds)}")
        facts["waits on"] = " → ".join(ahead.path)
    terminal.show_facts(facts, False)
    terminal.say("")
    if tree:
        for line in drawn(found):
            terminal.say(line)
    else:
        terminal.show(rows, JOB_COLUMNS, False)


def _draw(tree: TreeStatus, path: Path) -> None:
    from .job_picture import picture

    try:
        path.write_text(picture(tree), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"--svg {path}: {error.strerror}") from None


def _span(seconds: float) -> str:
    """A duration for people, in the largest unit of which there are two or more."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def drawn(tree: TreeStatus) -> list[str]:
    """A line for each job, indented below its parent; a job with several parents stands below the last of them."""
    below: dict[str, list[JobStatus]] = {}
    for each in tree.jobs:
        below.setdefault(each.parents[-1] if each.parents else "", []).append(each)
    lines: list[str] = []
    left = [(0, each) for each in reversed(below.get("", []))]
    while left:
        depth, each = left.pop()
        how = " (gathers)" if each.gather else " (each element)" if each.each else ""
        also = f" with {', '.join(each.parents[:-1])}" if len(each.parents) > 1 else ""
        state = "complete" if each.complete_at else "sealed" if each.sealed else "open"
        counts = f"{each.pending} pending, {each.succeeded} succeeded, {each.failed} failed"
        lines.append(terminal.cell(f"{'  ' * depth}{'└ ' if depth else ''}{each.name}{how}{also}: {state}, {counts}"))
        left += [(depth + 1, child) for child in reversed(below.get(each.name, []))]
    return lines


@job.command()
def results(
    id: Id,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="At most so many.")] = SHOWN,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Results of the final jobs, item by item. Exit code 1 when some items failed."""
    rows: list[dict[str, Any]] = []
    after, more = "", True
    while more and len(rows) < limit:
        most, behind = min(PAGE, limit - len(rows)), after
        page = found_gateway.ask(gateway, lambda client, most=most, behind=behind: client.job_results(id, behind, most))  # type: ignore[misc]
        rows += [
            {
                "item": each.item,
                "job": each.job,
                "succeeded": each.succeeded,
                "result": json.loads(each.result) if each.succeeded else None,
                "reason": each.reason,
            }
            for each in page.results
        ]
        after, more = page.after, bool(page.after)
    terminal.show(rows, ["item", "job", "succeeded", "result", "reason"], as_json, empty="there are no results yet")
    if more and not as_json:
        terminal.complain("there may be more: --limit shows them")
    if not all(row["succeeded"] for row in rows):
        raise typer.Exit(terminal.FAILED)


@job.command()
def cancel(id: Id, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """End a job: waiting items are cancelled, running ones are told."""
    _change(id, "cancel", why, gateway, as_json)


@job.command()
def pause(id: Id, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Start no more items of a job until it is resumed."""
    _change(id, "pause", why, gateway, as_json)


@job.command()
def resume(id: Id, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Let a paused job go on."""
    _change(id, "resume", why, gateway, as_json)


@job.command()
def retry(
    id: Id,
    made: Annotated[
        str, typer.Option("--as", metavar="ID", help="The new job's id: a repeat with it makes no further job.")
    ] = "",
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Make another job of the items that failed in one that is over. Prints its id. If the answer is lost, the message
    has the --as to ask again with: that finds the same job, also if it is over by then."""
    from ...foundation.identity import whoami
    from ...sdk.job_calls import new_id

    new = made or new_id()
    try:
        found = found_gateway.ask(gateway, lambda client: client.retry_job(id, new, whoami(), why))
    except Unavailable:
        terminal.complain(f"it may have been made all the same: `tailrace job retry {id} --as {new}` finds or makes it")
        raise
    if as_json:
        terminal.show_json({**_row(found), "gathers_anew": found.anew})
        return
    terminal.say(found.id)
    if found.anew:
        terminal.complain(
            f"{', '.join(map(terminal.cell, found.anew))} gathers only the results of this try: items before had "
            f"failed, and the results of {terminal.cell(id)} are not among them"
        )


@job.command()
def delete(id: Id, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Cancel a job, and forget it once nothing of it runs."""
    _change(id, "delete", why, gateway, as_json)


@job.command()
def audit(id: Id, gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Check that the rows of a job agree with each other. Exit code 1 when they do not."""
    found = found_gateway.ask(gateway, lambda client: client.audit_job(id))
    if as_json:
        terminal.show_json({"id": id, "wrong": found})
    else:
        terminal.say("\n".join(found) if found else f"{terminal.cell(id)}: every item is where it should be")
    if found:
        raise typer.Exit(terminal.FAILED)


def _change(id: str, what: str, why: str, gateway: str | None, as_json: bool) -> None:
    from ...foundation.identity import whoami

    word = found_gateway.ask(gateway, lambda client: client.change_job(id, what, whoami(), why))
    terminal.show([{"id": id, "outcome": word}], ["id", "outcome"], as_json)


def _row(tree: TreeStatus) -> dict[str, Any]:
    return {
        "id": tree.id,
        "type": tree.type,
        "key": tree.key,
        "state": str(tree.state),
        "why": tree.why,
        "policy": tree.policy,
        "jobs": len(tree.jobs),
        "pending": tree.pending,
        "succeeded": tree.succeeded,
        "failed": tree.failed,
        "created_by": tree.created_by,
        "created_at": terminal.moment(tree.created_at),
        "complete_at": terminal.moment(tree.complete_at),
    }


def _job_row(each: JobStatus) -> dict[str, Any]:
    return {
        "job": each.name,
        "function": each.function,
        "after": ", ".join(each.parents),
        "final": each.final,
        "sealed": each.sealed,
        "gather": each.gather,
        "each": each.each,
        "pending": each.pending,
        "succeeded": each.succeeded,
        "failed": each.failed,
        "complete_at": terminal.moment(each.complete_at),
    }
