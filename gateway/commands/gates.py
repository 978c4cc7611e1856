"""The commands `tailrace function` and `tailrace gate`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...model.gate import GATED
from ...sdk import found_gateway

function = typer.Typer(help="Functions that workers have registered.", no_args_is_help=True, rich_markup_mode=None)
gate = typer.Typer(help="Pause or drop workloads.", no_args_is_help=True, rich_markup_mode=None)

FunctionName = Annotated[str, typer.Argument(metavar="[FUNCTION]", help="The function; else give another option.")]
Collection = Annotated[str, typer.Option("--collection", help="Only this collection of the function.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Only this tenant (of the function or downstream, if given).")]
Downstream = Annotated[str, typer.Option("--downstream", help="Every function that calls this downstream.")]
Source = Annotated[str, typer.Option("--source", metavar="TAILER", help="Everything that this tailer reads.")]
For = Annotated[str, typer.Option("--for", help="Duration, such as 2h; then the gate ends by itself.")]
Until = Annotated[str, typer.Option("--until", help='End of the gate, such as "18:00" or "2026-05-01T12:00".')]
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
    function: FunctionName = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    source: Source = "",
    why: Why = "",
    lasting: For = "",
    until: Until = "",
    gateway: GatewayAddress = None,
) -> None:
    """Hold workloads in their sources; running ones go on."""
    _set_gate(gateway, "pause", (function, collection, tenant, downstream, source), why, lasting, until)


@gate.command("drop")
def gate_drop(
    why: Annotated[str, typer.Option("--why", help="The reason, kept with every dropped range.")],
    function: FunctionName = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    source: Source = "",
    lasting: For = "",
    until: Until = "",
    gateway: GatewayAddress = None,
) -> None:
    """Discard workloads instead of running them. They are gone for good; their positions are recorded."""
    _set_gate(gateway, "drop", (function, collection, tenant, downstream, source), why, lasting, until)


@gate.command("resume")
def gate_resume(
    function: FunctionName = "",
    collection: Collection = "",
    tenant: Tenant = "",
    downstream: Downstream = "",
    source: Source = "",
    why: terminal.Why = "",
    gateway: GatewayAddress = None,
) -> None:
    """Remove a gate."""
    _set_gate(gateway, "resume", (function, collection, tenant, downstream, source), why)


def _set_gate(
    gateway: str | None,
    action: str,
    names: tuple[str, str, str, str, str],
    why: str = "",
    lasting: str = "",
    until: str = "",
) -> None:
    from ...foundation.clock import SYSTEM_CLOCK
    from ...foundation.identity import whoami
    from ...model.gate import Gate
    from ...model.gate_end import gate_end

    function, collection, tenant, downstream, source = names
    end = gate_end(lasting, until, SYSTEM_CLOCK.wall())
    made = Gate(
        function, collection, action, whoami(), why, tenant=tenant, downstream=downstream, source=source, until=end
    )
    found_gateway.ask(gateway, lambda client: client.set_gate(made))
    past = {"pause": "paused", "drop": "dropped from now on", "resume": "resumed"}[action]
    terminal.say(f"{made.what}: {past}{f' until {terminal.moment(end)}' if end else ''}")


@gate.command("list")
def gate_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Gates that hold or drop workloads."""
    gates = found_gateway.ask(gateway, lambda client: client.limits()).gates
    rows = [
        {
            "gate": each.what,
            "action": each.action,
            "who": each.who,
            "why": each.why,
            "since": terminal.moment(each.since),
            "until": terminal.moment(each.until),
        }
        | dict(zip(GATED, each.key, strict=True))
        for each in gates
    ]
    terminal.show(rows, ["gate", "action", "who", "why", "since", "until"], as_json, empty="every gate is open")
