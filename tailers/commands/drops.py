"""The command `tailrace tailer drops`: the positions that were passed without being run, and by whose order."""

from __future__ import annotations

from typing import Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...model.drop import Cause
from ...sdk import found_gateway


def tailer_drops(
    tailer: Annotated[str, typer.Argument(metavar="TAILER", help="The tailer's name; default: all tailers.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="The most ranges to show.")] = 100,
    skip: Annotated[int, typer.Option("--skip", min=0, help="Ranges to leave out at the beginning.")] = 0,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Show the positions that were passed without being run: dropped by a gate or a seek, lost to retention, absent."""

    rows = [
        {
            "tailer": row.source,
            "partition": row.partition,
            "first": row.drop.first,
            "last": row.drop.last,
            "items": row.drop.items,
            "cause": row.drop.cause.name.lower(),
            "gate": (row.drop.version if row.drop.cause is Cause.GATE else 0) or None,
            "who": row.drop.who,
            "why": row.drop.why,
            "at": terminal.moment(row.drop.at),
        }
        for row in found_gateway.ask(gateway, lambda client: client.drops(tailer, limit, skip))
    ]
    terminal.show(rows, list(rows[0]) if rows else [], as_json, empty="nothing was passed without being run")
    if len(rows) == limit and not as_json:
        terminal.complain(f"there may be more: go on with --skip {skip + limit}")
