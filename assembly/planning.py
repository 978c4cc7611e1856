"""The command `tailrace quota plan`: what a change of quotas is, and with a recording, how work would have fared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..foundation import terminal
from ..foundation.terminal import GatewayAddress, Json


def quota_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="All quotas, as in quotas.yaml.")],
    traffic: Annotated[
        Path | None,
        typer.Option("--traffic", metavar="RECORDING", help="Play what `tailrace record` kept, before and after."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most so many functions and tenants.")] = 40,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """What applying a file would change, and what to think about before; with a recording, how work would have fared.
    Changes nothing."""
    from ..gateway.commands.quotas import planned, show_plan, to_plan

    plan = to_plan(file, gateway)
    told = planned(plan)
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
