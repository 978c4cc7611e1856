"""The command `tailrace health`: whether parts are ready, for probes and for people."""

from __future__ import annotations

from typing import Annotated

import typer

from ...foundation import terminal


def health(
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS…]",
            help="host:port of a gateway, scheduler, delay service or store; or http://host:port of a part's metrics, "
            "as of a worker. Default: the gateway and the scheduler here.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Time for each part to answer.")] = 3.0,
) -> None:
    """Whether parts are ready, for probes. Exit code 0 when all of them are."""
    from ...sdk.discovery import find_gateway, find_scheduler
    from ...wire.probing import unready

    asked = addresses or [find_gateway(), find_scheduler().addresses[0]]
    found = terminal.call(unready(asked, timeout))
    for address, why in found.items():
        terminal.say(f"{address}: {why or 'ready'}")
    if any(found.values()):
        raise typer.Exit(terminal.FAILED)
