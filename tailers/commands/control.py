"""The commands `tailrace tailer pause | resume | seek`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...sdk import found_gateway

if TYPE_CHECKING:
    pass

Name = Annotated[str, typer.Argument(metavar="TAILER", help="Its name.")]


def pause(
    tailer: Name,
    why: Annotated[str, typer.Option("--why", help="The reason, shown by `gate list`.")] = "",
    lasting: Annotated[str, typer.Option("--for", help="For so long, such as 2h.")] = "",
    until: Annotated[str, typer.Option("--until", help='Until then, such as "18:00" or "2026-05-01T12:00".')] = "",
    gateway: GatewayAddress = None,
) -> None:
    """Let a tailer read nothing more, wherever it runs; what waits goes back. A gate of its source: until `resume`, or
    until its end."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.gate_end import gate_end

    end = gate_end(lasting, until, SYSTEM_CLOCK.wall())
    _gate(tailer, "pause", gateway, why, end)
    terminal.say(f"{tailer}: paused{f' until {terminal.moment(end)}' if end else ''}")


def resume(tailer: Name, why: Why = "", gateway: GatewayAddress = None) -> None:
    """The opposite of `pause`; also starts again what had failed for good, or at once what would be later."""
    _gate(tailer, "resume", gateway, why)
    terminal.say(f"{tailer}: goes on")


def _gate(tailer: str, action: str, gateway: str | None, why: str = "", until: float = 0.0) -> None:
    from ...foundation.identity import whoami
    from ...model.gate import Gate

    gate = Gate("", "", action, whoami(), why, source=tailer, until=until)
    if note := found_gateway.ask(gateway, lambda client: client.pause_tailer(gate)):
        terminal.complain(note)


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
