"""The command `tailrace audit`: did every position of a tailer's source end, and once?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...model.errors import InvalidRequest
from ...sdk import found_gateway

if TYPE_CHECKING:
    from ...model.audit import Audit


def audit(
    tailer: Annotated[str, typer.Argument(metavar="TAILER", help="The tailer's name.")],
    partition: Annotated[str | None, typer.Option("--partition", help="Only this partition.")] = None,
    span: Annotated[
        str | None, typer.Option("--range", metavar="A:B", help="Only the positions from A to before B.")
    ] = None,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Show how each position of a tailer's source ended, or where its item is. Exit code 1 when the sum is wrong."""

    positions = None if span is None else range_of(span)

    audits = found_gateway.ask(gateway, lambda client: client.audit(tailer, partition, positions))
    if as_json:
        terminal.show_json([_facts(each) for each in audits])
    else:
        rows = [
            {"partition": each.partition, "class": name, "count": count, "of": each.length}
            for each in audits
            for name, count in (*each.counts.items(), ("sum", each.sum))
        ]
        terminal.show(rows, ["partition", "class", "count", "of"], False, empty="nothing was read yet")
    for each in audits:
        where = f"partition {each.partition}: " if each.partition else ""
        for fault in each.verdict():
            terminal.complain(f"{where}{fault}")
    if not all(each.good for each in audits):
        raise typer.Exit(terminal.FAILED)


def range_of(text: str) -> tuple[int, int]:
    """`A:B` as numbers. Raises InvalidRequest."""
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18})", text)
    if match is None:
        raise InvalidRequest(f"--range is {text!r}: expected two positions, such as 0:1000")
    return int(match[1]), int(match[2])


def _facts(audit: Audit) -> dict[str, Any]:
    return {
        "tailer": audit.tailer,
        "partition": audit.partition,
        "first": audit.first,
        "end": audit.end,
        "counts": audit.counts,
        "sum": audit.sum,
        "good": audit.good,
        "missing": audit.missing,
        "missing_count": audit.missing_count,
        "doubled": audit.doubled,
        "doubled_count": audit.doubled_count,
        "faults": audit.verdict(),
    }
