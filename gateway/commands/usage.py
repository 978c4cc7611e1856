"""The command `tailrace usage`: amounts used, for planning and for charging."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.clock import SYSTEM_CLOCK
from ...foundation.terminal import GatewayAddress, Json
from ...model.units import moment_of
from ...model.usage import COLUMNS, HOUR, KEPT_HOURS, UsageSum, summed
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...wire.gateway import GatewayClient

#: Most hours of one call.
STEP = 24


def usage(
    since: Annotated[str, typer.Option("--since", metavar="WHEN", help="A duration ago (24h, 7d), or a time.")] = "24h",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="Like --since; default: now.")] = "",
    by: Annotated[
        str, typer.Option("--by", metavar="COLUMNS", help="Columns of hour, function, tenant, downstream; with commas.")
    ] = "function,tenant",
    function: Annotated[str, typer.Option("--function", metavar="NAME", help="Only this function.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Only this tenant.")] = "",
    downstream: Annotated[
        str, typer.Option("--downstream", metavar="NAME", help="Only callers of this downstream.")
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Amounts used: slot-seconds and runs, by function, tenant, downstream and hour. 30 days are kept."""
    columns = _columns(by)
    now = SYSTEM_CLOCK.wall()
    first = int(moment_of("--since", since, now)) // HOUR
    last = -(-int(moment_of("--until", until, now) or now) // HOUR)

    async def ask(client: GatewayClient) -> list[UsageSum]:
        found: list[UsageSum] = []
        for begin in range(max(first, int(now) // HOUR - KEPT_HOURS), last, STEP):
            end = min(last, begin + STEP)
            found = summed([*found, *await client.usage(begin, end, columns, function, tenant, downstream)])
        return found

    rows = _rows(found_gateway.ask(gateway, ask), columns)
    shown = [*columns, "items", "slot_seconds", "units"]
    if as_csv:
        _write_csv(rows, shown)
    elif as_json:
        terminal.show_json(rows)
    else:
        rows = [row | {"units": _units_text(row["units"])} for row in rows]
        whole = sum(row["slot_seconds"] for row in rows) or 1
        rows = [row | {"share": f"{100 * row['slot_seconds'] / whole:.1f} %"} for row in rows]
        terminal.show(rows, [*shown, "share"], False, empty="nothing was used, or no scheduler reported yet")


def _columns(by: str) -> list[str]:
    from ...model.errors import InvalidRequest

    columns = [each.strip() for each in by.split(",") if each.strip()]
    if not columns or set(columns) - set(COLUMNS) or len(set(columns)) < len(columns):
        raise InvalidRequest(f"--by {by}: expected some of {', '.join(COLUMNS)}, joined by commas, each once")
    return columns


def _rows(sums: list[UsageSum], columns: list[str]) -> list[dict[str, Any]]:
    """Rows of a table with runs and units used, the largest first; by hour: in the order of the hours."""
    units: dict[tuple[int, str, str, str], dict[str, int]] = {}
    for each in sums:
        if each.unit:
            units.setdefault(each[:4], {})[each.unit] = each.micros
    plain = {each[:4]: each for each in sums if not each.unit}
    whole = [*plain.values(), *(UsageSum(*place, 0, 0) for place in units if place not in plain)]
    rows = []
    for each in sorted(whole, key=lambda each: (each.hour, -each.micros, each[:4])):
        row: dict[str, Any] = {name: getattr(each, name) for name in columns}
        if "hour" in row:
            row["hour"] = terminal.moment(each.hour * HOUR)
        used = {"items": each.items, "slot_seconds": round(each.micros / 1e6, 3), "units": units.get(each[:4], {})}
        rows.append(row | used)
    return rows


def _units_text(units: dict[str, int]) -> str:
    return ", ".join(f"{amount:,} {unit}" for unit, amount in sorted(units.items()))


def _write_csv(rows: list[dict[str, Any]], columns: list[str]) -> None:
    """Prints rows as CSV with a heading. Labels come from users, so one that looks like a formula is quoted as text."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        row = row | {"units": " ".join(f"{unit}={amount}" for unit, amount in sorted(row["units"].items()))}
        writer.writerow([_plain(row[name]) for name in columns])


def _plain(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
