"""The commands `tailrace tailer pause | resume | seek | forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...sdk import found_gateway

if TYPE_CHECKING:
    pass

Name = Annotated[str, typer.Argument(metavar="TAILER", help="The tailer's name.")]


def pause(
    tailer: Name,
    why: Annotated[str, typer.Option("--why", help="The reason, shown by `gate list`.")] = "",
    lasting: Annotated[str, typer.Option("--for", help="How long, such as 2h.")] = "",
    until: Annotated[
        str, typer.Option("--until", help='The end of the pause, such as "18:00" or "2026-05-01T12:00".')
    ] = "",
    gateway: GatewayAddress = None,
) -> None:
    """Pause a tailer, wherever it runs: it reads nothing more, and items that wait go back. The pause is a gate of its
    source, until `resume` or until the end of the gate."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.gate_end import gate_end

    end = gate_end(lasting, until, SYSTEM_CLOCK.wall())
    _gate(tailer, "pause", gateway, why, end)
    terminal.say(f"{tailer}: paused{f' until {terminal.moment(end)}' if end else ''}")


def resume(tailer: Name, why: Why = "", gateway: GatewayAddress = None) -> None:
    """End a pause. A tailer that had failed for good starts again, and one that waits for its next try starts at
    once."""
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
    why: Annotated[str, typer.Option("--why", help="The reason, noted with the dropped items.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show how many items would be dropped.")] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Move the checkpoint of a paused or stopped stream tailer forward. Items that never ran are dropped, and noted."""
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


def forget(tailer: Name, why: Why = "", gateway: GatewayAddress = None) -> None:
    """Forget a tailer that does not come back, with its checkpoints and notes: one of its name begins anew. Until then
    the platform's log keeps what it did not settle, however old. The lease of a process that died is waited for."""
    from ...model.seek import ForgetTailer

    stream = found_gateway.ask(gateway, lambda client: client.forget_tailer(ForgetTailer(tailer, why=why)))
    terminal.say(f"{tailer}: forgotten" + (f"; the retention of {stream} waits for it no more" if stream else ""))
