"""The commands `tailrace reschedule` and `tailrace peek`, about one workload that has not ended."""

from __future__ import annotations

import base64
import codecs
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.errors import InvalidRequest
from .workloads import Id, label

if TYPE_CHECKING:
    from ...model.one_item import Peeked

#: Bytes of a payload that are shown by default, and most bytes of one answer.
PREVIEW, MOST = 4096, 8 << 20

_AT = 'New due time: "10m" from now, or "2026-05-01T12:00".'
_RAW = "Write the payload's bytes as they are, and nothing else."


def reschedule(
    id: Id,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help=_AT)] = None,
    now: Annotated[bool, typer.Option("--now", help="Make it due now.")] = False,
    priority: Annotated[str | None, typer.Option("--priority", help="New priority.")] = None,
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Give a waiting workload another due time or priority. Exit code 1 when nothing was changed."""
    from ...model.units import delay_or_moment
    from ...sdk.client import Client

    if at is None and not now and priority is None:
        raise InvalidRequest("nothing is to be changed: expected --at TIME, --now or --priority NAME")
    if at is not None and now:
        raise InvalidRequest("--at and --now are both given: expected one of them")
    delay, moment = (None, None) if at is None else delay_or_moment("--at", at)
    with Client(gateway) as client:
        found = client.reschedule(id, delay=delay, at=moment, now=now, priority=priority, why=why)
    status = found.status
    facts: dict[str, Any] = {"id": found.id, "outcome": found.outcome}
    if status is not None:
        facts |= {
            "function": status.function,
            "state": status.state,
            "priority": label(status.kind.priority),
            "due_at": terminal.moment(status.due_at),
        }
    if as_json:
        terminal.show_json({**facts, "why": found.why})
    else:
        terminal.show_facts(facts, False)
        if found.why:
            terminal.complain(f"tailrace: {terminal.cell(found.id)}: {found.why}")
    if not found.changed:
        raise typer.Exit(terminal.FAILED)


def peek(
    id: Id,
    most: Annotated[
        int, typer.Option("--bytes", min=0, max=MOST, help="At most so many bytes of the payload.")
    ] = PREVIEW,
    raw: Annotated[bool, typer.Option("--raw", help=_RAW)] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Show the payload, headers and key of a workload that has not ended. Changes nothing."""
    from ...sdk.client import Client

    if raw and as_json:
        raise InvalidRequest("--raw and --json are both given: expected one of them")
    with Client(gateway) as client:
        found = client.peek(id, max_bytes=MOST if raw else most)
    if raw:
        sys.stdout.buffer.write(found.payload)
        sys.stdout.buffer.flush()
        if len(found.payload) < found.size:
            terminal.complain(f"tailrace: the first {len(found.payload)} of {found.size} bytes: no answer carries more")
            raise typer.Exit(terminal.FAILED)
        return
    facts = _facts(found)
    if as_json:
        terminal.show_json({**facts, **_as_json(found)})
        return
    terminal.show_facts({**facts, "headers": ""}, False)
    for name, value in found.headers:
        terminal.say(f"header  {terminal.cell(name)}: {terminal.cell(value)}")
    terminal.say("")
    terminal.say(terminal.cell(found.payload.decode("utf-8", "backslashreplace")))
    if len(found.payload) < found.size:
        terminal.complain(f"the first {len(found.payload)} of {found.size} bytes: --bytes shows more, --raw all")


def _facts(found: Peeked) -> dict[str, Any]:
    status = found.status
    return {
        "id": status.id,
        "function": status.function,
        "state": status.state,
        "priority": label(status.kind.priority),
        "collection": status.kind.collection,
        "tenant": status.kind.tenant,
        "key": found.key,
        "behind": found.behind,
        "attempts": status.attempts,
        "created_at": terminal.moment(status.created_at),
        "due_at": terminal.moment(status.due_at),
        "expires_at": terminal.moment(found.expires_at),
        "headers": dict(found.headers),
        "payload_bytes": found.size,
    }


def _as_json(found: Peeked) -> dict[str, Any]:
    """The payload as JSON data: text where it is UTF-8, else Base64; and whether it is whole."""
    whole = len(found.payload) == found.size
    try:
        text: str | None = codecs.getincrementaldecoder("utf-8")().decode(found.payload, final=whole)
        coded = None
    except UnicodeDecodeError:
        text, coded = None, base64.b64encode(found.payload).decode()
    return {"payload": text, "payload_base64": coded, "whole": whole}
