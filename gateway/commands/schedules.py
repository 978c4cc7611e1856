"""The commands `tailrace schedule …`: what runs by the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.errors import InvalidRequest
from ...sdk import found_gateway
from .workloads import arguments_of

if TYPE_CHECKING:
    from ...wire.schedule_messages import ScheduleView

#: Coming runs, and former runs, that `show` shows.
SHOWN = 10
COLUMNS = ["name", "function", "when", "state", "next", "runs", "passed_over", "created_by"]

schedule = typer.Typer(
    help="Run functions by the clock: cron, intervals, moments.", no_args_is_help=True, rich_markup_mode=None
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@schedule.command("list")
def schedule_list(gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """All schedules by name, with the next run of each."""
    views = found_gateway.ask(gateway, lambda client: client.schedules())
    terminal.show([_row(view) for view in views], COLUMNS, as_json, empty="there are no schedules")


@schedule.command()
def show(name: Name, gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """One schedule, with its next ten runs and its last ones."""
    [view] = found_gateway.ask(gateway, lambda client: client.schedules(name, next=SHOWN, last=SHOWN))
    _show(view, as_json)


@schedule.command()
def add(
    name: Name,
    function: Annotated[str, typer.Argument(metavar="FUNCTION")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Arguments of each run, as for `tailrace submit`.")
    ] = None,
    cron: Annotated[
        str, typer.Option("--cron", metavar="FIELDS", help='Such as "0 3 * * *"; six fields begin with seconds.')
    ] = "",
    every: Annotated[str, typer.Option("--every", metavar="TIME", help='Time between runs, such as "15m".')] = "",
    at: Annotated[
        str, typer.Option("--at", metavar="WHEN", help='Once: "2026-12-24T18:00", or in "10m" from now.')
    ] = "",
    timezone: Annotated[
        str, typer.Option("--timezone", help="Time zone of cron, and of times without an offset.")
    ] = "UTC",
    json_arguments: Annotated[
        str | None, typer.Option("--json-arguments", metavar="TEXT", help="All arguments as a JSON object; - reads it.")
    ] = None,
    priority: Annotated[str, typer.Option("--priority", help="A priority; default: the function's.")] = "",
    collection: Annotated[str, typer.Option("--collection", help="A label among the function's.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="The customer it is for, a label to find it by.")] = "",
    overlap: Annotated[
        str, typer.Option("--overlap", help="For a run that is due during the one before: skip, queue or allow.")
    ] = "skip",
    catch_up: Annotated[
        str, typer.Option("--catch-up", help="For missed runs: skip, latest or all; default: skip (with --at latest).")
    ] = "",
    catch_up_max: Annotated[int, typer.Option("--catch-up-max", help="At most so many missed runs.")] = 100,
    grace: Annotated[str, typer.Option("--grace", metavar="TIME", help="A run later than this was missed.")] = "60s",
    jitter: Annotated[
        str, typer.Option("--jitter", metavar="TIME", help="Each run is later by some part of this.")
    ] = "0s",
    starts: Annotated[str, typer.Option("--starts", metavar="WHEN", help="No run before.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="No run after.")] = "",
    max_runs: Annotated[int, typer.Option("--max-runs", min=0, help="At most so many runs; 0: no limit.")] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a schedule of this name.")] = False,
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Add a schedule; it is durable when this returns, and shows its next runs."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.schedule import CatchUp, Overlap, Schedule, usual_catch_up
    from ...model.units import seconds
    from ...sdk.payload import encode_arguments

    now = SYSTEM_CLOCK.wall()
    once = _moment("--at", at, timezone, now)
    wanted = Schedule(
        name,
        function,
        encode_arguments(None, arguments_of(arguments or [], json_arguments)),
        cron=cron,
        every=seconds(every) if every else 0.0,
        at=once,
        timezone=timezone,
        priority=priority,
        collection=collection,
        tenant=tenant,
        overlap=Overlap(_one_of("--overlap", overlap, Overlap)),
        catch_up=CatchUp(_one_of("--catch-up", catch_up, CatchUp)) if catch_up else usual_catch_up(once),
        catch_up_max=catch_up_max,
        grace=seconds(grace),
        jitter=seconds(jitter),
        starts=_moment("--starts", starts, timezone, now),
        until=_moment("--until", until, timezone, now),
        max_runs=max_runs,
    )
    _show(found_gateway.ask(gateway, lambda client: client.put_schedule(wanted, replace, why)), as_json)


def _one_of(option: str, text: str, words: Any) -> str:
    if text not in list(words):
        raise InvalidRequest(f"{option} is {text!r}: expected one of {', '.join(words)}")
    return text


def _moment(option: str, text: str, timezone: str, now: float) -> float:
    """A time, or a duration from now, as wall clock seconds."""
    from ...model.units import seconds
    from ...stores.schedules.timetable import moment_in

    try:
        return now + seconds(text) if text else 0.0
    except InvalidRequest:
        return moment_in(option, text, timezone)


@schedule.command()
def pause(name: Name, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Start no more runs until `resume`; runs that fall into the pause are passed over, and counted."""
    _change(name, "pause", why, gateway, as_json)


@schedule.command()
def resume(name: Name, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Let a paused schedule run again, from its next time on."""
    _change(name, "resume", why, gateway, as_json)


@schedule.command("run-now")
def run_now(name: Name, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Run a schedule once now, beside its own times; also one that is paused or over."""
    view = found_gateway.ask(gateway, lambda client: client.change_schedule(name, "run-now", why))
    [run] = view.last
    if as_json:
        terminal.show_json({"name": name} | _run(run))
    else:
        terminal.say(f"{name}: run {run.position}, by hand")


@schedule.command()
def remove(name: Name, why: Why = "", gateway: GatewayAddress = None, as_json: Json = False) -> None:
    """Remove a schedule. Runs that have begun go on."""
    _change(name, "remove", why, gateway, as_json)


def _change(name: str, what: str, why: str, gateway: str | None, as_json: bool) -> None:
    view = found_gateway.ask(gateway, lambda client: client.change_schedule(name, what, why))
    if as_json:
        terminal.show_json(_row(view))
        return
    passed = f", {view.passed_over} runs passed over so far" if what == "resume" and view.passed_over else ""
    terminal.say(f"{name}: {'removed' if what == 'remove' else view.state}{passed}")


def _show(view: ScheduleView, as_json: bool) -> None:
    row = _row(view)
    if as_json:
        terminal.show_json(row)
        return
    left_out = ("next", "coming", "last", "cron", "every", "at", "passed_over")
    facts = {name: value for name, value in row.items() if name not in left_out and value not in (0, "0s", False)}
    terminal.show_facts(facts | ({"passed over": view.passed_over} if view.passed_over else {}), False)
    for moment in row["coming"]:
        terminal.say(f"next  {moment}")
    for run in row["last"]:
        terminal.say(f"ran   {run['instant']}{'  (by hand)' if run['by_hand'] else ''}")


def _row(view: ScheduleView) -> dict[str, Any]:
    """A schedule with all fields as JSON data; times in its own time zone."""
    from ...model.units import duration_text

    said = view.schedule
    coming = [_in_zone(at, said.timezone) for at in view.next]
    return {
        "name": said.name,
        "function": said.function,
        "arguments": said.payload.decode(errors="backslashreplace"),
        "when": said.when,
        "state": view.state,
        "next": coming[0] if coming else None,
        "coming": coming,
        "runs": view.runs,
        "passed_over": view.passed_over,
        "cron": said.cron,
        "every": said.every,
        "at": _in_zone(said.at, said.timezone),
        "timezone": said.timezone,
        "priority": said.priority,
        "collection": said.collection,
        "tenant": said.tenant,
        "overlap": said.overlap.value,
        "catch_up": said.catch_up.value,
        "catch_up_max": said.catch_up_max,
        "grace": duration_text(said.grace),
        "jitter": duration_text(said.jitter),
        "starts": _in_zone(said.starts, said.timezone),
        "until": _in_zone(said.until, said.timezone),
        "max_runs": said.max_runs,
        "created_by": said.created_by,
        "created": _in_zone(said.created_at, said.timezone),
        "origin": said.origin.value,
        "last": [_run(run) | {"instant": _in_zone(run.instant, said.timezone)} for run in view.last],
    }


def _run(run: Any) -> dict[str, Any]:
    return {
        "run": run.position,
        "instant": terminal.moment(run.instant),
        "fired_at": terminal.moment(run.fired_at),
        "by_hand": run.by_hand,
    }


def _in_zone(at: float, timezone: str) -> str | None:
    """A time as ISO 8601 with the offset of a zone, to the second; None for 0."""
    from datetime import datetime

    from ...stores.schedules.timetable import zone_of

    if not at:
        return None
    try:
        return datetime.fromtimestamp(at, zone_of(timezone)).isoformat(timespec="seconds")
    except InvalidRequest:  # known to the gateway, not here
        return terminal.moment(at)
