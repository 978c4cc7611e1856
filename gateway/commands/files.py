"""The command `tailrace reload`."""

from __future__ import annotations

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...sdk import found_gateway


def reload(why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Read the files of the configuration directory again. Quotas, schedules and tailers take effect at once; if a file
    is wrong, nothing is changed. Exit code 1 when the file of a tailer could not be put in force."""
    changes = found_gateway.ask(gateway, lambda client: client.reload(why))
    rows = [change._asdict() for change in changes]
    terminal.show(rows, ["file", "change", "effect"], as_json, empty="no file has changed")
    if any(change.effect.startswith("not in force") for change in changes):
        raise typer.Exit(terminal.FAILED)
