"""The view of a running demo: one picture, drawn from plain data; a live view on a terminal, else lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..model.outcome import Outcome
from ..model.overview import Overview
from ..model.priority import Priority
from ..wire.v1 import scheduler_pb2
from .journal import DemoVerdict

#: The view is drawn for a terminal of so many columns, and never wider.
WIDTH = 80
#: Events shown: the latest ones.
EVENTS = 6


@dataclass(slots=True)
class Picture:
    """The picture that the view shows. `overview` and `scheduler` are None until these parts answered once."""

    seconds: float
    verdict: DemoVerdict
    overview: Overview | None = None
    scheduler: scheduler_pb2.InspectReply | None = None
    events: Sequence[str] = field(default_factory=list)


def line(picture: Picture) -> str:
    """The picture in one line, for output that is not a terminal."""
    verdict = picture.verdict
    delayed = 0 if picture.overview is None else sum(picture.overview.delay.values())
    return (
        f"{picture.seconds:5.1f} s  {verdict.ended}/{verdict.listed} files, {verdict.summarised} summaries, "
        f"{verdict.retried} retried, {verdict.throttled} throttled, {verdict.dead_lettered} dead, {delayed} waiting"
    )


def draw(picture: Picture) -> RenderableType:
    """The picture for the live view."""
    verdict = picture.verdict
    head = Text.assemble(
        ("tailrace demo", "bold"),
        f"   {picture.seconds:4.1f} s   {verdict.ended} of {verdict.listed} files, {verdict.summarised} summaries",
    )
    bar = ProgressBar(total=max(1, verdict.listed), completed=verdict.ended, width=WIDTH)
    parts: list[RenderableType] = [head, bar, _tailers(picture.overview), _lanes(picture.scheduler)]
    parts.append(_delays(picture.overview))
    parts.append(_outcomes(verdict, picture.scheduler))
    parts.extend(
        Text(f"· {event}", style="dim", overflow="ellipsis", no_wrap=True) for event in picture.events[-EVENTS:]
    )
    return Group(*parts)


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, width=WIDTH, padding=(0, 1), show_edge=False)
    table.add_column(title, style="cyan", no_wrap=True, ratio=1)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _tailers(overview: Overview | None) -> RenderableType:
    table = _table("tailer", "state", "read", "in flight", "settled", "parked", "dead")
    for each in [] if overview is None else overview.tailers:
        counts = (each.read, each.in_flight, each.settled, each.parked, each.dead)
        table.add_row(each.name, each.state, *map(str, counts))
    return table


def _lanes(scheduler: scheduler_pb2.InspectReply | None) -> RenderableType:
    table = _table("lane", "waiting", "running", "why the first one waits")
    for lane in [] if scheduler is None else scheduler.lanes:
        name = f"{lane.function} / {Priority.of_rank(lane.priority).label}"
        table.add_row(name, str(lane.waiting), str(lane.running), lane.reason)
    return table


def _delays(overview: Overview | None) -> Text:
    held = {} if overview is None else {name: items for name, items in overview.delay.items() if items}
    text = "  ".join(f"{name} {items}" for name, items in held.items())
    return Text.assemble(("delay streams  ", "cyan"), text or "empty", overflow="ellipsis", no_wrap=True)


def _outcomes(verdict: DemoVerdict, scheduler: scheduler_pb2.InspectReply | None) -> Text:
    counts = {} if scheduler is None else {each.outcome: each.count for each in scheduler.outcomes}
    known = [(Outcome(number).name.lower(), count) for number, count in sorted(counts.items()) if count]
    text = "  ".join(f"{name} {count}" for name, count in known)
    return Text.assemble(
        ("outcomes       ", "cyan"), text or f"{verdict.indexed} indexed", overflow="ellipsis", no_wrap=True
    )
