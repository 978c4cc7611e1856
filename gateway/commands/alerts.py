"""The commands `tailrace alerts` and `tailrace queue`: alerts for operators, and the backlog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...model.alert import Backlog


def alerts(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Alerts that hold now, each with its subject, its beginning and what to do. Exit code 1 when there are some."""
    found = found_gateway.ask(gateway, lambda client: client.overview()).alerts
    if as_json:
        terminal.show_json([asdict(each) | {"since": terminal.moment(each.since)} for each in found])
    for each in [] if as_json else found:
        since = terminal.moment(each.since)
        terminal.say(f"{each.code} ({terminal.cell(each.subject)}) since {since}: {terminal.cell(each.what)}")
        terminal.say(f"    {terminal.cell(each.todo)}")
    if not found and not as_json:
        terminal.say("nothing to look at")
    if found:
        raise typer.Exit(terminal.FAILED)


def queue(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """The queue: workloads by state, each priority against its service level, and when backlogs will be empty."""
    overview = found_gateway.ask(gateway, lambda client: client.overview())
    backlogs = [
        asdict(each) | {"empty_in": each.empty_in if each.empty_in >= 0 else None} for each in overview.backlogs
    ]
    if as_json:
        levels = [asdict(each) for each in overview.levels]
        terminal.show_json({"states": overview.queue, "levels": levels, "backlogs": backlogs})
        return
    states = ", ".join(f"{count} {state}" for state, count in overview.queue.items() if count)
    away = "its store does not answer" if not overview.levels else "empty"
    terminal.say(f"the queue: {states or away}")
    rows: list[dict[str, Any]] = [
        {
            "priority": each.priority,
            "oldest due": terminal.distance(each.waited),
            "allowed": terminal.distance(each.waited_allowed),
            "of": each.waited_by,
            "attempts": each.attempts,
            "most": each.attempts_allowed,
            "by": each.attempts_by,
        }
        for each in overview.levels
    ]
    if rows:
        terminal.show(rows, list(rows[0]), as_json)
    for each in overview.backlogs:
        terminal.say(f"{each.name}: {each.items} waiting{_forecast(each)}")


def _forecast(backlog: Backlog) -> str:
    """The growth of a backlog and its forecast, in words, to follow its size."""
    if not backlog.items:
        return ""
    if backlog.growth == 0 and backlog.empty_in < 0:
        return ", neither more nor fewer so far"
    seen = terminal.distance(backlog.watched)
    change = f", {abs(backlog.growth):.3g} a second {'more' if backlog.growth > 0 else 'fewer'} over {seen}"
    return change + (f"; empty in {terminal.distance(backlog.empty_in)}" if backlog.empty_in >= 0 else "")
