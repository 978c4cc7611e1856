"""The commands `tailrace submit`, `status`, `find`, `result` and `cancel`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.errors import InvalidRequest, PartlySubmitted, TailraceError

if TYPE_CHECKING:
    from ...model.status import WorkloadStatus
    from ...sdk.call import Call
    from ...sdk.client import Client
    from ...sdk.handle import Handle

Ids = Annotated[list[str], typer.Argument(metavar="ID…")]
Id = Annotated[str, typer.Argument(metavar="ID")]
FunctionName = Annotated[str, typer.Argument(metavar="FUNCTION")]

_SINCE = 'Submitted since: "1h" ago, or "2026-05-01T12:00".'
#: Most copies that one `submit --count` makes.
MOST_COPIES = 1_000_000
#: Copies that go in one call.
CHUNK_COPIES = 1000


def submit(
    function: FunctionName,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE…", help='Arguments: JSON values, or text (`n=5`, `name=Ann`, `zip="01"`).'),
    ] = None,
    json_arguments: Annotated[
        str | None,
        typer.Option(
            "--json-arguments", metavar="TEXT", help="All arguments as a JSON object; -: from standard input."
        ),
    ] = None,
    delay: Annotated[str | None, typer.Option("--delay", metavar="TIME", help='Due after, such as "30s".')] = None,
    priority: Annotated[str | None, typer.Option("--priority", help="A priority; default: the function's.")] = None,
    collection: Annotated[str | None, typer.Option("--collection", help="A label among the function's.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The customer it is for, a label that limits can name.")] = "",
    key: Annotated[str, typer.Option("--key", help="The ordering key.")] = "",
    dedupe_key: Annotated[str, typer.Option("--dedupe-key", help="Idempotency key: a known one submits nothing.")] = "",
    on_done: Annotated[str, typer.Option("--on-done", help="A function or an https URL that is told of the end.")] = "",
    created_by: Annotated[
        str,
        typer.Option(
            "--created-by",
            metavar="NAME",
            help="The submitter; default: user@host. Of a certificate or a token its name stands there.",
        ),
    ] = "",
    count: Annotated[int, typer.Option("--count", min=1, max=MOST_COPIES, help="Number of copies.")] = 1,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Submit a workload; it is durable when this returns. Prints its id."""
    given = arguments_of(arguments or [], json_arguments)
    if dedupe_key and count > 1:
        raise InvalidRequest("--dedupe-key with --count would submit one workload only: leave one of them out")
    from ...foundation.identity import whoami
    from ...sdk.call import Call
    from ...sdk.client import Client

    one = Call(
        function,
        delay=delay,
        priority=priority,
        collection=collection,
        tenant=tenant,
        key=key,
        dedupe_key=dedupe_key,
        on_done=on_done,
        created_by=created_by or whoami(),
        arguments=given,
    )
    handles: list[Handle] = []
    with Client(gateway) as client, terminal.progress("submitting", count) as advance:
        failure = _submit_copies(client, one, count, handles, advance)
    ids: list[dict[str, Any]] = [
        {"id": each.id, "function": function, "duplicate": each.duplicate, "spooled": each.spooled} for each in handles
    ]
    if failure is not None:
        if as_json:
            terminal.show_json(ids)
        raise failure
    if as_json:
        terminal.show_json(ids)
        return
    if count == 1:
        terminal.say(ids[0]["id"] + ("  (submitted before, with the same dedupe key)" if ids[0]["duplicate"] else ""))
    else:
        terminal.say(f"{count} workloads submitted, {ids[0]['id']} … {ids[-1]['id']}")
    if any(each["spooled"] for each in ids):
        terminal.complain(
            "spooled: the store is away, so the workload is on the gateway's disk, lasts as long as that, and goes to "
            "the store by itself" + (". Nobody knows yet whether the dedupe key was used before" if dedupe_key else "")
        )


def _submit_copies(
    client: Client, one: Call, count: int, handles: list[Handle], advance: Callable[[int], None]
) -> PartlySubmitted | None:
    """Submits copies, and adds the handles of accepted ones to `handles`. Returns the error for the others, where only
    some were accepted; raises it where none was."""
    try:
        for start in range(0, count, CHUNK_COPIES):
            more = client.submit_many([one] * min(CHUNK_COPIES, count - start))
            handles += more
            advance(len(more))
    except TailraceError as error:
        why: BaseException = error
        if isinstance(error, PartlySubmitted):
            handles += error.handles
            why = error.__cause__ or error
        if not handles:
            raise
        return PartlySubmitted(f"{_some(handles, count)}; none is known to be of the others: {why}", handles)
    except KeyboardInterrupt:
        if count > 1:
            asked = min(CHUNK_COPIES, count - len(handles))
            terminal.complain(
                f"tailrace: interrupted: {_some(handles, count)}; whether the next {asked} were is not known"
                " (`tailrace find` shows them)"
            )
        raise
    return None


def _some(handles: Sequence[Handle], count: int) -> str:
    """The message that only some were submitted."""
    first_and_last = f", {handles[0].id} … {handles[-1].id}" if handles else ""
    return f"{len(handles)} of {count} were submitted{first_and_last}"


def arguments_of(pairs: Iterable[str], text: str | None) -> dict[str, Any]:
    """The arguments of a call from `key=value` pairs or one JSON object."""
    given: dict[str, Any] = {}
    if text is not None:
        text = sys.stdin.read() if text == "-" else text
        try:
            given = json.loads(text)
        except ValueError as error:
            raise InvalidRequest(f"--json-arguments is not JSON: {error}") from None
        if not isinstance(given, dict):
            raise InvalidRequest('--json-arguments: expected an object, such as {"name": "Ann"}')
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidRequest(f"{pair!r} is not an argument: expected key=value, such as name=Ann or n=5")
        if name in given:
            raise InvalidRequest(f"the argument {name!r} is given twice: keep one of them")
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    return given


def status(ids: Ids, gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Status of workloads. Exit code 1 when one of them is not known."""
    from ...sdk.client import Client

    with Client(gateway) as client:
        why: dict[str, str] = {}
        found = client.status_many(ids, tries=True, why=why)
    rows = [_status_row(id, each, why.get(id, "")) for id, each in zip(ids, found, strict=True)]
    terminal.show(rows, ["id", "function", "state", "attempts", "due_at", "progress", "reason"], as_json)
    if any(each is None for each in found):
        raise typer.Exit(terminal.FAILED)


def find(
    function: Annotated[str, typer.Option("--function", help="Only of this function.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Only of this tenant.")] = "",
    state: Annotated[list[str] | None, typer.Option("--state", help="Only in this state. May be repeated.")] = None,
    key: Annotated[str, typer.Option("--key", help="Only with this ordering key, and not ended.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="TIME", help=_SINCE)] = "",
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="Submitted before, written like --since.")] = "",
    after: Annotated[str, typer.Option("--after", metavar="ID", help="Go on after this workload.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_COPIES, help="At most so many.")] = 100,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Workloads of the queue that fit all options, the newest first."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.units import moment_of
    from ...sdk.client import Client

    now = SYSTEM_CLOCK.wall()
    with Client(gateway) as client:
        found = client.find(
            function=function,
            tenant=tenant,
            states=state or (),
            key=key,
            since=moment_of("--since", since, now),
            until=moment_of("--until", until, now),
            after=after,
            limit=limit,
        )
    rows = [_status_row(each.id, each) for each in found]
    columns = ["id", "function", "state", "attempts", "created_at", "ended_at", "reason"]
    terminal.show(rows, columns, as_json, empty="no workload fits; those that ended long ago are forgotten")
    if len(found) == limit and not as_json:
        terminal.complain(f"there may be more: --after {found[-1].id}")


def _status_row(id: str, status: WorkloadStatus | None, why: str = "") -> dict[str, Any]:
    tries = () if status is None else status.tries
    if status is None:
        told = f", or lost: {why}" if why else ""
        return {"id": id, "state": "unknown", "reason": f"never submitted here, or ended long ago{told}"}
    return {
        "id": status.id,
        "function": status.function,
        "state": status.state,
        "priority": label(status.kind.priority),
        "collection": status.kind.collection,
        "tenant": status.kind.tenant,
        "attempts": status.attempts,
        "crashes": status.crashes,
        "created_at": terminal.moment(status.created_at),
        "due_at": terminal.moment(status.due_at),
        "ended_at": terminal.moment(status.ended_at),
        "progress": status.progress,
        "worker": status.worker,
        "heard_at": terminal.moment(status.heard_at),
        "created_by": status.created_by,
        "reason": status.reason,
        "tries": [{"at": terminal.moment(each.at), "outcome": each.outcome, "reason": each.reason} for each in tries],
    }


def label(priority: int) -> str:
    """A priority's name."""
    from ...model.priority import Priority

    return Priority.of_rank(priority).label


def result(
    id: Id,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    timeout: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="Longest wait.")] = None,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Result of a workload, as JSON. Exit code 1 when it did not succeed, is not over, or is not known."""
    from ...model.errors import WorkloadFailed
    from ...model.units import seconds
    from ...sdk.client import Client

    patience = seconds(timeout) if timeout else None if wait else 0
    with Client(gateway) as client:
        try:
            value = client.result(id, patience)
        except InvalidRequest as error:
            if client.status_many([id])[0] is not None:
                raise
            terminal.not_found(str(error))
        except TimeoutError:
            now = client.status_many([id])[0] if patience == 0 else None
            if now is None or now.ended:
                raise
            terminal.not_found(f"{now.function} {id} is {now.state}, so it has no result yet: --wait waits for it")
        except WorkloadFailed as error:
            if as_json:
                terminal.show_json({"id": id, "outcome": error.outcome, "reason": error.reason})
                raise typer.Exit(terminal.FAILED) from None
            raise
    terminal.show_json({"id": id, "outcome": "success", "result": value} if as_json else value)


def cancel(ids: Ids, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Ask for the end of workloads. Exit code 1 when one of them is not known."""
    from ...sdk.client import Client

    with Client(gateway) as client:
        outcomes = client.cancel_many(ids, why=why)
    rows = [{"id": id, "outcome": outcome} for id, outcome in zip(ids, outcomes, strict=True)]
    terminal.show(rows, ["id", "outcome"], as_json)
    if "unknown" in outcomes:
        raise typer.Exit(terminal.FAILED)
