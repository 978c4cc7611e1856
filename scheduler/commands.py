"""Commands that look into a scheduler: why a workload is not running, and all that the scheduler holds."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from ..foundation import terminal
from ..foundation.terminal import GatewayAddress, Json

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
    id: Annotated[str, typer.Argument(metavar="[ID]", help="The id of a workload; else give --function.")] = "",
    function: Annotated[str, typer.Option("--function", help="Explain all that holds this function's workloads.")] = "",
    collection: Annotated[str, typer.Option("--collection", help="Only workloads of this collection.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Only workloads of this tenant.")] = "",
    priority: Annotated[
        str, typer.Option("--priority", help="Only workloads of this priority; default: the function's own.")
    ] = "",
    source: Annotated[str, typer.Option("--source", metavar="TAILER", help="Only workloads from this tailer.")] = "",
    scheduler: SchedulerAddress = None,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Tell why a workload is not running, or where it runs; or all that holds the workloads of a function."""
    from ..model.errors import InvalidRequest
    from .explaining import Asks, explain_function, explain_item

    if bool(id) == bool(function):
        raise InvalidRequest("explain needs one of two: the id of a workload, or --function")
    if id and (collection or tenant or priority or source):
        raise InvalidRequest(
            "--collection, --tenant, --priority and --source go with --function: with an id leave them out"
        )
    asks = Asks(scheduler, gateway)
    if id:
        facts = terminal.call(explain_item(asks, id))
    else:
        facts = terminal.call(explain_function(asks, function, collection, tenant, priority, source))
    if as_json:
        terminal.show_json(facts)
    else:
        holds = facts.pop("holds")
        terminal.show_facts(facts, as_json=False)
        for number, hold in enumerate(holds, 1):
            end = f" (until {hold['ends_at']})" if hold["ends_at"] else ""
            terminal.say(f"{number}. {terminal.cell(hold['reason'])}: {terminal.cell(hold['detail'])}{end}")
    if facts.get("state") == "unknown":
        raise typer.Exit(terminal.FAILED)


def inspect(scheduler: SchedulerAddress = None, as_json: Json = False) -> None:
    """Show lanes, workers, tailers, outcomes and reasons of a scheduler."""
    from google.protobuf.json_format import MessageToDict

    reply = terminal.call(_inspect(scheduler))
    if as_json:
        terminal.show_json(
            MessageToDict(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        )
        return
    from ..foundation.clock import SYSTEM_CLOCK
    from ..model.outcome import Outcome
    from ..model.priority import Priority
    from ..sdk import downstream_status

    terminal.show_facts({"scheduler": reply.scheduler, "ready": reply.ready}, False)
    lanes = [
        {
            "function": lane.function,
            "priority": Priority.of_rank(lane.priority).label,
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
        | {"health": ", ".join(sorted({pool.failure or pool.health for pool in each.pools}))}
        | {"labels": " ".join(f"{name}={value}" if value else name for name, value in sorted(each.labels.items()))}
        for each in reply.workers
    ]
    tailers = [
        {"tailer": each.name, "in_flight": each.in_flight, "connected": each.connected} for each in reply.tailers
    ]
    outcomes = [{"outcome": Outcome(each.outcome).name.lower(), "count": each.count} for each in reply.outcomes]
    reasons = [{"held_because": each.reason, "count": each.count} for each in reply.reasons]
    downstreams = downstream_status.rows(reply.downstreams, SYSTEM_CLOCK.wall())
    retries = [
        {"retries_of": each.function, "per_second": each.rate, "waiting": each.waiting} for each in reply.retries
    ]
    units = [
        {"unit": each.unit, "left": each.left, "burst": each.burst, "per_second": each.rate, "waiting": each.waiting}
        | {name: getattr(each, name) for name in ("function", "collection", "tenant", "downstream")}
        for each in reply.units
    ]
    for rows in (lanes, clogged, downstreams, units, retries, workers, tailers, outcomes, reasons):
        if rows:
            terminal.say("")
            terminal.show(rows, list(rows[0]), False)


def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file for the recording.")],
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="The length of the recording; Ctrl-C ends it too.")
    ] = "1h",
    hash_tenants: Annotated[
        bool, typer.Option("--hash-tenants", help="Keep hashes in place of the names of tenants.")
    ] = False,
    scheduler: SchedulerAddress = None,
) -> None:
    """Record arrivals at a scheduler and their run times, for `quota plan --traffic`: counts by kind alone."""
    from ..model.units import seconds

    terminal.say(f"{file}: {terminal.call(_record(file, seconds(duration), hash_tenants, scheduler))}")


async def _record(file: Path, duration: float, hash_tenants: bool, scheduler: str | None) -> str:
    """Writes frame by frame, so that an end for any cause leaves all frames until then."""
    from .explaining import scheduler_client
    from .recording import RecordingFile

    client, salt = scheduler_client(scheduler), secrets.token_hex(16) if hash_tenants else ""
    writing: RecordingFile | None = None
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):  # also where a shell started it in the background, deaf to Ctrl-C
        loop.add_signal_handler(each, task.cancel)  # type: ignore[union-attr]
    try:
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
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


async def _inspect(scheduler: str | None) -> Any:
    from .explaining import scheduler_client

    client = scheduler_client(scheduler)
    try:
        return await client.inspect()
    finally:
        await client.close()
