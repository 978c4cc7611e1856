"""Commands about functions: which there are, and their gates."""

from __future__ import annotations

from typing import Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...sdk import found_gateway

function = typer.Typer(help="Functions that workers have registered.", no_args_is_help=True, rich_markup_mode=None)
gate = typer.Typer(help="Pause or drop a function's workloads.", no_args_is_help=True, rich_markup_mode=None)

FunctionName = Annotated[str, typer.Argument(metavar="FUNCTION")]
Collection = Annotated[str, typer.Option("--collection", help="Only this collection of the function.")]
Why = Annotated[str, typer.Option("--why", help="The reason, shown by `gate list`.")]


@function.command("list")
def function_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Functions, with their priority and retry policy."""
    from ...model.function_spec import spec_to_dict

    functions = found_gateway.ask(gateway, lambda client: client.functions())
    rows = [spec_to_dict(spec) for spec in functions]
    for row in rows:
        row["attempts"] = row["retry"]["max_attempts"]
    terminal.show(
        rows,
        ["name", "priority", "attempts", "timeout", "pool", "isolation", "description"],
        as_json,
        empty="no function is registered: start a worker (`tailrace worker MODULE`, `tailrace up --functions MODULE`)",
    )


@gate.command("pause")
def gate_pause(
    function: FunctionName, collection: Collection = "", why: Why = "", gateway: GatewayAddress = None
) -> None:
    """Hold a function's workloads where they rest; what runs goes on."""
    _set_gate(gateway, function, collection, "pause", why)


@gate.command("drop")
def gate_drop(
    function: FunctionName,
    why: Annotated[str, typer.Option("--why", help="The reason, kept with every dropped range.")],
    collection: Collection = "",
    gateway: GatewayAddress = None,
) -> None:
    """Discard a function's workloads instead of running them. They are gone for good; which ones is kept."""
    _set_gate(gateway, function, collection, "drop", why)


@gate.command("resume")
def gate_resume(function: FunctionName, collection: Collection = "", gateway: GatewayAddress = None) -> None:
    """Remove a gate."""
    _set_gate(gateway, function, collection, "resume", "")


def _set_gate(gateway: str | None, function: str, collection: str, action: str, why: str) -> None:
    from ...foundation.identity import whoami
    from ...model.limits import Gate

    found_gateway.ask(gateway, lambda client: client.set_gate(Gate(function, collection, action, whoami(), why)))
    past = {"pause": "paused", "drop": "dropped from now on", "resume": "resumed"}[action]
    terminal.say(f"{function}{f' / {collection}' if collection else ''}: {past}")


@gate.command("list")
def gate_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """The gates that are closed."""
    gates = found_gateway.ask(gateway, lambda client: client.limits()).gates
    rows = [
        {
            "function": each.function,
            "collection": each.collection,
            "action": each.action,
            "who": each.who,
            "why": each.why,
            "since": terminal.moment(each.since),
        }
        for each in gates
    ]
    terminal.show(rows, list(rows[0]) if rows else [], as_json, empty="every gate is open")
