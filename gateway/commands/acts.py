"""The command `tailrace acts`: the acts of operators (audit trail)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...model.act import MOST_SHOWN, Act
from ...model.errors import InvalidRequest
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...wire.gateway import GatewayClient

COLUMNS = ["number", "at", "who", "from", "what", "on", "why", "outcome"]
#: Characters of a cell of the table.
CELL = 60


def acts(
    number: Annotated[
        int, typer.Argument(metavar="[NUMBER]", help="Only this act, with the states before and after.")
    ] = 0,
    who: Annotated[str, typer.Option("--who", metavar="TEXT", help="Only acts by a name that contains this.")] = "",
    what: Annotated[
        str, typer.Option("--what", metavar="TEXT", help="Only acts of this kind, such as gate pause.")
    ] = "",
    on: Annotated[
        str, typer.Option("--on", metavar="TEXT", help="Only acts on a subject whose name contains this.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", help=f"At most so many, up to {MOST_SHOWN}.")] = 50,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Acts of operators (audit trail), the newest first: when, who, from where, act, subject, reason and outcome."""

    async def ask(client: GatewayClient) -> list[Act]:
        if number:
            return [each for each in await client.acts(before=number + 1, limit=1) if each.number == number]
        return await client.acts(who, what, on, limit=limit)

    found = found_gateway.ask(gateway, ask)
    if number and not found:
        raise InvalidRequest(f"no act has the number {number}: `tailrace acts` shows all that are kept")
    rows = [_row(each) for each in found]
    if number:
        terminal.show_facts(rows[0], as_json)
    elif as_json:
        terminal.show_json(rows)
    else:
        terminal.show([{name: _cell(row[name]) for name in COLUMNS} for row in rows], COLUMNS, False)


def _row(act: Act) -> dict[str, Any]:
    said = act._asdict()
    return {
        "number": act.number,
        "at": terminal.moment(act.at),
        "who": act.who,
        "from": act.place,
        **{name: said[name] for name in ("what", "on", "why", "before", "after")},
        "outcome": act.outcome or "not known",
    }


def _cell(value: Any) -> Any:
    return f"{value[: CELL - 1]}…" if isinstance(value, str) and len(value) > CELL else value
