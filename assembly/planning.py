"""The command `tailrace quota plan`: shows a change of quotas, and with a recording, how work would have fared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..foundation import terminal
from ..foundation.terminal import GatewayAddress, Json
from ..model.errors import TailraceError, Unavailable

if TYPE_CHECKING:
    from ..wire.v1.scheduler_pb2 import InspectReply


def quota_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="All quotas, as in quotas.yaml.")],
    traffic: Annotated[
        Path | None,
        typer.Option("--traffic", metavar="RECORDING", help="A file of `tailrace record`, to play before and after."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most so many functions and tenants.")] = 40,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Show the changes that a file of quotas would make, and doubts about them; with a recording, how work would have
    fared. Changes nothing."""
    from ..gateway.commands.quotas import planned, show_plan, to_plan
    from ..scheduler.quota_fit import attached, facts, misfits

    plan = to_plan(file, gateway)
    told: dict[str, Any] = planned(plan) | {"attached": None}
    reply = terminal.call(_inspected())
    if reply is None:
        terminal.complain("no scheduler answers: nothing was compared with the workers that are attached now")
    else:
        now = attached(reply)
        told["attached"] = facts(now)
        told["warnings"] += misfits(plan.wanted, plan.snapshot.functions, now)
    if traffic is not None:
        from ..scheduler.recording import read_recording
        from .what_if import compare, show_comparison

        recording = read_recording(traffic)
        told |= compare(recording, plan.snapshot.quotas, plan.wanted, plan.snapshot.functions)
    if as_json:
        terminal.show_json(told)
        return
    show_plan(told)
    if traffic is not None:
        show_comparison(told, limit)


async def _inspected() -> InspectReply | None:
    """The state of the scheduler that is found here; None: none answers."""
    from ..sdk.discovery import find_scheduler
    from ..wire.scheduler import SchedulerClient

    try:
        found = find_scheduler()
        client = SchedulerClient(found.addresses[0], found.reason)
    except TailraceError:
        return None
    try:
        return await client.inspect()
    except Unavailable:
        return None
    finally:
        await client.close()
