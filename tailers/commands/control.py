"""The commands `tailrace tailer pause | resume | seek`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...sdk import terminal
from ...sdk.terminal import GatewayAddress, Json

if TYPE_CHECKING:
    pass

Name = Annotated[str, typer.Argument(metavar="TAILER", help="Its name.")]


def pause(tailer: Name, gateway: GatewayAddress = None) -> None:
    """Let a tailer read nothing more; what is out goes on. Until `resume`, or until its process ends."""
    _set_paused(tailer, True, gateway)
    terminal.say(f"{tailer}: paused")


def resume(tailer: Name, gateway: GatewayAddress = None) -> None:
    """The opposite of `pause`; also starts again what had failed for good."""
    _set_paused(tailer, False, gateway)
    terminal.say(f"{tailer}: goes on")


def _set_paused(tailer: str, paused: bool, gateway: str | None) -> None:
    terminal.ask(gateway, lambda client: client.pause_tailer(tailer, paused))


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
    from ...sdk.clock import SYSTEM_CLOCK
    from ...sdk.model.seek import END, START, Seek
    from ...sdk.model.units import moment_of

    wanted = Seek(tailer, partition=partition, why=why, dry_run=dry_run)
    if to in (START, END):
        wanted = wanted._replace(edge=to)
    elif to.isascii() and to.isdecimal() and len(to) < 19:
        wanted = wanted._replace(position=int(to))
    else:
        wanted = wanted._replace(time=moment_of("TO", to, SYSTEM_CLOCK.wall()))

    moves = terminal.ask(gateway, lambda client: client.seek_tailer(wanted))
    rows = [{"tailer": tailer, **move._asdict()} for move in moves]
    terminal.show(
        rows, ["tailer", "partition", "before", "after", "dropped"], as_json, empty="no partition is known yet"
    )
    if dry_run and not as_json:
        terminal.complain("nothing was changed")
