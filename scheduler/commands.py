"""Commands that look into a scheduler: why a workload is not running, and what the scheduler holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..sdk import terminal
from ..sdk.terminal import GatewayAddress, Json

if TYPE_CHECKING:
    from ..sdk.model.limits import Snapshot
    from ..sdk.model.status import WorkloadStatus

DEFAULT_SCHEDULER = "127.0.0.1:8788"

SchedulerAddress = Annotated[
    str,
    typer.Option("--scheduler", metavar="HOST:PORT", envvar="TAILRACE_SCHEDULER", help="The scheduler to ask."),
]


def explain(
    id: Annotated[str, typer.Argument(metavar="ID")],
    scheduler: SchedulerAddress = DEFAULT_SCHEDULER,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Why a workload is not running, or where it runs."""
    facts = terminal.call(_explain(id, scheduler, gateway))
    terminal.show_facts(facts, as_json)
    if facts["state"] == "unknown":
        raise typer.Exit(terminal.FAILED)


async def _explain(id: str, scheduler: str, gateway: str | None) -> dict[str, Any]:
    """Asks the scheduler first, which knows what it was handed; then the gateway, which knows what rests."""
    from ..sdk.discovery import find_gateway
    from ..sdk.model.errors import Unavailable
    from ..sdk.wire.gateway import GatewayClient
    from ..sdk.wire.scheduler import SchedulerClient

    client = SchedulerClient(scheduler)
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
    async with GatewayClient(find_gateway(gateway)) as asked:
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
    """Why a workload that no scheduler has is where it is: a reason code, and a sentence. `clogged`: function → why."""
    name = status.function
    if status.ended:
        return "ended", status.reason or f"it ended as {status.state}"
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
    if status.state in ("claimed", "processing"):
        return "handed_out", "it is on its way to a scheduler or from it"
    return "waiting", "it waits where it rests: a tailer takes it when the scheduler grants credit for its function"


def inspect(scheduler: SchedulerAddress = DEFAULT_SCHEDULER, as_json: Json = False) -> None:
    """What the scheduler holds: lanes, workers, tailers, outcomes, reasons."""
    from google.protobuf.json_format import MessageToDict

    reply = terminal.call(_inspect(scheduler))
    if as_json:
        terminal.show_json(
            MessageToDict(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        )
        return
    from ..sdk.model.outcome import Outcome
    from ..sdk.model.priority import Priority

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


async def _inspect(scheduler: str) -> Any:
    from ..sdk.wire.scheduler import SchedulerClient

    client = SchedulerClient(scheduler)
    try:
        return await client.inspect()
    finally:
        await client.close()
