"""Commands that look into a scheduler: why a workload is not running, and what the scheduler holds."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..foundation import terminal
from ..foundation.terminal import GatewayAddress, Json
from ..sdk import found_gateway

if TYPE_CHECKING:
    from ..model.limits import Snapshot
    from ..model.status import WorkloadStatus
    from ..wire.scheduler import SchedulerClient

SchedulerAddress = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="HOST:PORT",
        envvar="TAILRACE_SCHEDULER",
        help="The scheduler to ask; default: yours here, 127.0.0.1:8788 or the one that runs.",
    ),
]


def explain(
    id: Annotated[str, typer.Argument(metavar="ID")],
    scheduler: SchedulerAddress = None,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Why a workload is not running, or where it runs."""
    facts = terminal.call(_explain(id, scheduler, gateway))
    terminal.show_facts(facts, as_json)
    if facts["state"] == "unknown":
        raise typer.Exit(terminal.FAILED)


async def _explain(id: str, scheduler: str | None, gateway: str | None) -> dict[str, Any]:
    """Asks the scheduler first, which knows what it was handed; then the gateway, which knows what rests."""
    from ..model.errors import Unavailable

    client = _client(scheduler)
    unreachable = ""
    clogged: dict[str, str] = {}
    try:
        reply = await client.explain(id)
        if reply.known:
            facts = {"id": id, "state": reply.state, "reason": reply.reason, "detail": reply.detail}
            return facts | {"worker": reply.worker, "ahead": reply.ahead}
        clogged = {each.function: each.reason for each in (await client.inspect()).clogged}
    except Unavailable as error:
        unreachable = str(error)
    finally:
        await client.close()
    async with found_gateway.gateway_client(gateway) as asked:
        status = (await asked.status([id]))[0]
        if status is None:
            detail = (
                unreachable
                or "no scheduler has it now; what rests in a source of its own is known only while in flight"
            )
            return {"id": id, "state": "unknown", "reason": "unknown", "detail": detail}
        reason, detail = resting(status, await asked.limits(), time.time(), clogged)
    return {"id": id, "state": status.state, "reason": reason, "detail": unreachable or detail}


def resting(  # noqa: PLR0911 - one return per reason
    status: WorkloadStatus, limits: Snapshot, now: float, clogged: Mapping[str, str]
) -> tuple[str, str]:
    """Why a workload that the asked scheduler does not have is where it is: a reason code, and a sentence. `clogged`:
    function → why."""
    from ..model.status import HANDED_OUT, SPOOLED

    name = status.function
    if status.ended:
        return "ended", status.reason or f"it ended as {status.state}"
    if status.state == SPOOLED:
        return "spooled", "it is on its gateway's disk, and goes to the store by itself as soon as that takes it"
    if status.state in HANDED_OUT:
        return "handed_out", _handed_out(status, now)
    if status.due_at > now:
        last = f"; its last run failed: {status.reason}" if status.reason else ""
        return "not_due", f"it is due in {terminal.distance(status.due_at - now)}{last}"
    for gate in limits.gates:
        if gate.function == name and gate.collection in ("", status.kind.collection):
            why = f": {gate.why}" if gate.why else ""
            return gate.action, f"a gate ({gate.action}) is set by {gate.who or 'an operator'}{why}"
    if name in clogged:
        return "outage", clogged[name]
    if all(function.name != name for function in limits.functions):
        return "unknown_function", f"no worker has ever registered {name!r}"
    return "waiting", "it waits where it rests: a tailer takes it when the scheduler grants credit for its function"


def _handed_out(status: WorkloadStatus, now: float) -> str:
    """Of what a tailer holds, by its lease: until then nobody else gets it, whoever lost it meanwhile."""
    if status.due_at > now:
        over = f"ends in {terminal.distance(status.due_at - now)} unless it is renewed, and then it is handed out again"
    else:
        over = "is over: it is handed out again"
    return (
        "a tailer took it, and the scheduler that was asked does not have it: another one has, or it is on its way, or "
        f"it was lost with a session. Its lease {over}"
    )


def inspect(scheduler: SchedulerAddress = None, as_json: Json = False) -> None:
    """What the scheduler holds: lanes, workers, tailers, outcomes, reasons."""
    from google.protobuf.json_format import MessageToDict

    reply = terminal.call(_inspect(scheduler))
    if as_json:
        terminal.show_json(
            MessageToDict(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        )
        return
    from ..model.outcome import Outcome
    from ..model.priority import Priority

    terminal.show_facts({"scheduler": reply.scheduler, "ready": reply.ready}, False)
    lanes = [
        {
            "function": lane.function,
            "priority": Priority(lane.priority).label,
            "waiting": lane.waiting,
            "running": lane.running,
            "reason": lane.reason,
        }
        for lane in reply.lanes
    ]
    clogged = [
        {"clogged": each.function, "state": each.state, "since": terminal.moment(each.since), "reason": each.reason}
        for each in reply.clogged
    ]
    workers = [
        {"worker": each.name, "assigned": each.assigned, "connected": each.connected, "draining": each.draining}
        for each in reply.workers
    ]
    tailers = [
        {"tailer": each.name, "in_flight": each.in_flight, "connected": each.connected} for each in reply.tailers
    ]
    outcomes = [{"outcome": Outcome(each.outcome).name.lower(), "count": each.count} for each in reply.outcomes]
    reasons = [{"held_because": each.reason, "count": each.count} for each in reply.reasons]
    for rows in (lanes, clogged, workers, tailers, outcomes, reasons):
        if rows:
            terminal.say("")
            terminal.show(rows, list(rows[0]), False)


def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file for the recording.")],
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long; Ctrl-C ends it too.")
    ] = "1h",
    hash_tenants: Annotated[
        bool, typer.Option("--hash-tenants", help="Keep hashes in place of the names of tenants.")
    ] = False,
    scheduler: SchedulerAddress = None,
) -> None:
    """Keep what arrives at a scheduler and how long it runs, for `quota plan --traffic`: counts by kind alone."""
    from ..model.units import seconds

    terminal.say(f"{file}: {terminal.call(_record(file, seconds(duration), hash_tenants, scheduler))}")


async def _record(file: Path, duration: float, hash_tenants: bool, scheduler: str | None) -> str:
    """Writes frame by frame, so that whatever ends it leaves what came until then."""
    from .recording import RecordingFile

    client, salt = _client(scheduler), secrets.token_hex(16) if hash_tenants else ""
    writing: RecordingFile | None = None
    try:
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):  # that is Ctrl-C
            async with asyncio.timeout(duration), contextlib.aclosing(client.record(salt)) as lines:
                async for line in lines:
                    writing = writing or RecordingFile(file)
                    writing.add([line])
    finally:
        if writing is not None:
            writing.close()
        await client.close()
    if writing is None:
        return "nothing was recorded"
    lost = f"; {writing.lost} more were not recorded, since there were too many kinds" if writing.lost else ""
    return f"{writing.items} items arrived in {writing.frames} s{lost}"


def _client(scheduler: str | None) -> SchedulerClient:
    """What calls the scheduler at this address; None: where it is found."""
    from ..sdk.discovery import find_scheduler
    from ..wire.scheduler import SchedulerClient

    found = find_scheduler(scheduler)
    return SchedulerClient(found.addresses[0], found.reason)


async def _inspect(scheduler: str | None) -> Any:
    client = _client(scheduler)
    try:
        return await client.inspect()
    finally:
        await client.close()
