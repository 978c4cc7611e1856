"""The commands `tailrace tailer pause | resume | seek`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...sdk import found_gateway

if TYPE_CHECKING:
    pass

Name = Annotated[str, typer.Argument(metavar="TAILER", help="Its name.")]


def pause(tailer: Name, gateway: GatewayAddress = None) -> None:
    """Let a tailer read nothing more; what is out goes on. Until `resume`, or until its process ends."""
    _set_paused(tailer, True, gateway)
    terminal.say(f"{tailer}: paused")


def resume(tailer: Name, gateway: GatewayAddress = None) -> None:
    """The opposite of `pause`; also starts again what had failed for good, or at once what would be later."""
    _set_paused(tailer, False, gateway)
    terminal.say(f"{tailer}: goes on")


def _set_paused(tailer: str, paused: bool, gateway: str | None) -> None:
    found_gateway.ask(gateway, lambda client: client.pause_tailer(tailer, paused))


def seek(
    tailer: Name,
    to: Annotated[str, typer.Argument(metavar="TO", help='A position, "start", "end", "90m", or "2026-05-01T12:00".')],
    partition: Annotated[str | None, typer.Option("--partition", help="Only this partition.")] = None,
    why: Annotated[str, typer.Option("--why", help="Noted with what is dropped.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be dropped.")] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Move the checkpoint of a paused or stopped stream tailer forward. What nobody ran is dropped, and noted."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.seek import Seek, where

    place = where("TO", to, SYSTEM_CLOCK.wall())
    wanted = Seek(tailer, *place, partition=partition, why=why, dry_run=dry_run)
    moves = found_gateway.ask(gateway, lambda client: client.seek_tailer(wanted))
    rows = [{"tailer": tailer, **move._asdict()} for move in moves]
    terminal.show(
        rows, ["tailer", "partition", "before", "after", "dropped"], as_json, empty="no partition is known yet"
    )
    if dry_run and not as_json:
        terminal.complain("nothing was changed")
