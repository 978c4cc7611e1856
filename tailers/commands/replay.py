"""The commands `tailrace replay …`: run a part of a stream's past again; show, pause, resume and cancel such runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...sdk import found_gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.replay import Bound
    from ...wire.ports.replays import ReplayPort, ReplayView

#: Seconds between looks while a command waits for its replay.
LOOK_EVERY = 0.3
#: Looks without progress after which the command shows the reason.
STUCK = 20
COLUMNS = ["number", "tailer", "state", "progress", "items", "only", "priority", "who", "why", "created", "detail"]


class _Group(TyperGroup):
    """The commands, with `replay TAILER …` as a short form of `replay start TAILER …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)


replay = typer.Typer(
    help="Run a part of a stream's past again: `tailrace replay TAILER --from 2h --to end`.",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The replay's number, as `replay list` shows it.")]


@replay.command()
def start(
    tailer: Annotated[str, typer.Argument(metavar="TAILER", help="The tailer whose source is run again.")],
    begin: Annotated[
        str,
        typer.Option(
            "--from", metavar="WHERE", help='The first position, "start", "90m" (ago), or "2026-05-01T12:00".'
        ),
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="WHERE", help='The end, in the same form, or "end"; it is not run itself.')
    ],
    only: Annotated[str, typer.Option("--only", help="all, failed, dropped or unseen.")] = "all",
    partition: Annotated[str | None, typer.Option("--partition", help="Only this partition.")] = None,
    rate: Annotated[float, typer.Option("--rate", min=0, help="Items per second at most; 0: no limit.")] = 0.0,
    priority: Annotated[
        str,
        typer.Option("--priority", help='Priority of the items; "file": as in the tailer file; default: the lowest.'),
    ] = "",
    why: Annotated[str, typer.Option("--why", help="The reason, kept with the replay.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the positions that would be run.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the end of the replay.")] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Run items again that a stream tailer has settled, as a replay beside that tailer, and wait for its end. Exit code
    1 when some items became dead letters, or when the replay was cancelled."""
    from ...model.replay import PRIORITY, ReplayOrder

    bounds = _bound("--from", begin), _bound("--to", end)
    level = "" if priority == "file" else priority or PRIORITY
    order = ReplayOrder(tailer, *bounds, only, partition, rate, level, why=why, dry_run=dry_run)

    view = found_gateway.ask(gateway, lambda client: client.start_replay(order))
    if dry_run:
        _show_plan(view, as_json)
        return
    if not as_json or detach:
        _show_begun(view, as_json)
    if detach:
        return
    try:
        view = _wait(view, gateway)
    except KeyboardInterrupt:
        terminal.complain(f"replay {view.number} goes on; tailrace replay show | pause | cancel {view.number}")
        raise typer.Exit(130) from None
    _show_end(view, as_json)


def _bound(option: str, text: str) -> Bound:
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.replay import Bound
    from ...model.seek import where

    return Bound(**where(option, text, SYSTEM_CLOCK.wall())._asdict())


def _wait(view: ReplayView, gateway: str | None) -> ReplayView:
    """Watches a replay until it is over, with a progress bar on a terminal."""
    import asyncio

    from ...model.errors import Unavailable
    from ...model.replay import OVER

    async def watch(client: ReplayPort, advance: Callable[..., None]) -> ReplayView:
        known, still, said = view, 0, ""
        while known.state not in OVER:
            await asyncio.sleep(LOOK_EVERY)
            try:
                [now] = await client.replays(view.number)
            except Unavailable:
                continue  # a node that starts again goes on with it
            advance(max(0, now.ended - known.ended))
            still = 0 if now.ended > known.ended else still + 1
            known = now
            if still >= STUCK and known.detail and known.detail != said:
                said = known.detail
                terminal.complain(f"replay {view.number} waits: {said}")
        return known

    with terminal.progress(view.name, max(view.items, 0)) as advance:
        return found_gateway.ask(gateway, lambda client: watch(client, advance))


def _show_plan(view: ReplayView, as_json: bool) -> None:
    rows = [each._asdict() | {"items": each.items if each.items >= 0 else "?"} for each in view.stretches]
    if as_json:
        terminal.show_json(_row(view))
        return
    terminal.show(
        rows, ["partition", "first", "end", "items", "ranges", "waiting"], False, empty="nothing was settled yet"
    )
    terminal.complain("nothing was begun")


def _show_begun(view: ReplayView, as_json: bool) -> None:
    if as_json:
        terminal.show_json(_row(view))
        return
    waiting = sum(each.waiting for each in view.stretches)
    left_out = f"; {waiting} wait for a retry of {view.tailer} and are left out" if waiting else ""
    how_many = "an unknown number of items" if view.items < 0 else f"{view.items} item{'s' * (view.items != 1)}"
    terminal.say(f"replay {view.number} ({view.name}) begun: {how_many}{left_out}")


def _show_end(view: ReplayView, as_json: bool) -> None:
    if as_json:
        terminal.show_json(_row(view))
    else:
        counts = ", ".join(f"{count} {name}" for name, count in view.counts.items()) or "nothing ran"
        terminal.say(f"replay {view.number} is {view.state}: {counts}")
    if view.state != "done" or view.counts.get("dead"):
        raise typer.Exit(terminal.FAILED)


def _row(view: ReplayView) -> dict[str, Any]:
    row: dict[str, Any] = {**view._asdict(), "ended": view.ended}
    row["stretches"] = [each._asdict() for each in view.stretches]
    row["priority"] = view.priority or "file"
    row["created"] = terminal.moment(view.created_at)
    row["over"] = terminal.moment(view.ended_at)
    row["progress"] = f"{100 * view.ended // view.items} %" if view.items > 0 else str(view.ended)
    return row


@replay.command("list")
def replay_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """List replays, also those that are over, the newest first."""
    rows = [_row(view) for view in _ask(0, gateway)]
    terminal.show(rows, COLUMNS, as_json, empty="there are no replays")


@replay.command()
def show(number: Number, gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Show the progress of a replay, and how its items ended."""
    [view] = _ask(number, gateway)
    row = _row(view)
    if as_json:
        terminal.show_json(row)
        return
    facts = {name: row[name] for name in ("number", "name", *COLUMNS[1:], "over") if name in row}
    terminal.show_facts(facts | {"ended as": view.counts}, False)
    terminal.show(row["stretches"], ["partition", "first", "end", "items", "ranges", "waiting"], False)


def _ask(number: int, gateway: str | None) -> list[ReplayView]:

    return found_gateway.ask(gateway, lambda client: client.replays(number))


@replay.command()
def pause(number: Number, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Pause a replay until `resume`, also after a restart: nothing more is read. Items that are out and retries go
    on."""
    _change(number, "pause", why, gateway, as_json)


@replay.command()
def resume(number: Number, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """End the pause of a replay; also starts a replay again whose tailer had failed."""
    _change(number, "resume", why, gateway, as_json)


@replay.command()
def cancel(number: Number, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """End a replay for good. Items that are out come to their end; nothing more is run, and no retries either."""
    _change(number, "cancel", why, gateway, as_json)


def _change(number: int, what: str, why: str, gateway: str | None, as_json: bool) -> None:

    view = found_gateway.ask(gateway, lambda client: client.change_replay(number, what, why))
    if as_json:
        terminal.show_json(_row(view))
    else:
        terminal.say(f"replay {view.number}: {view.state}")
