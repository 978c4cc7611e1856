"""Runs scenarios for `tailrace bench`, each several times, and prints the medians against their targets."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..foundation import loop
from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest
from .catalogue import FAULTS, FORMS, IN_ALL, KAFKA, NAMES, RIVALS, Scenario, on_engine
from .figures import Figures
from .figures import Progress as Telling
from .percentiles import median
from .plot import Bar, bars, compared, curve, stacked, waited
from .python_build import ADVICE, this_one
from .sigterm import until_told
from .surroundings import surroundings
from .targets import ASKED
from .yardstick import yardstick_us

#: The usual size of `kafka` and `rivals`, and that of `rivals` with another engine.
KAFKA_ITEMS, QUEUE_ITEMS = 400_000, 100_000


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of a run. `items` is items or seconds, as the scenario measures; None: its usual size. `kafka` is the
    address of a broker (empty: one is started), `client` the library that reads it; `engine` holds the items of
    `delay`, `queue`, `latency`, `outbox` and the like, or the state of `stream`; `against` names the rivals, empty: all
    of them; `part` names the measurement of them on an engine, empty: all."""

    scenario: str
    items: float | None = None
    runs: int = 1
    as_json: bool = False
    plot: Path | None = None
    kafka: str = ""
    client: str = "kafka-python"
    engine: str = ""
    against: str = ""
    part: str = ""


def main(options: BenchOptions) -> int:
    """Runs and prints. Exit status 0 when every bound holds, 1 otherwise."""
    names = [*IN_ALL] if options.scenario == "all" else [options.scenario]
    for name in names:
        if name not in NAMES:
            raise InvalidRequest(f"unknown scenario {name!r}: {meant(name, (*NAMES, *FAULTS, 'all'))}")
    if options.against and names != [RIVALS]:
        raise InvalidRequest(f"--against is for the scenario {RIVALS}, not for {options.scenario}")
    if options.part and (names != [RIVALS] or _on_kafka(options)):
        raise InvalidRequest(f"--part is for the scenario {RIVALS} with an --engine other than kafka")
    around = surroundings(Path(tempfile.gettempdir()))
    figures = {name: _median_of(name, options) for name in names}
    rows = [
        Bar(asked.label, figures[name][asked.figure], asked.bound, asked.unit, asked.at_least)
        for name in names
        for asked in ASKED[_held_against(name, options)]
    ]
    if options.plot is not None and names == [RIVALS]:
        options.plot.write_text(_rivals_drawn(figures[RIVALS], options))
    elif options.plot is not None and names == ["plateau"]:
        options.plot.write_text(_sizes(figures["plateau"], options))
    elif options.plot is not None:
        note = f"median of {options.runs} on this machine; the dashed line is the target"
        options.plot.write_text(bars("tailrace bench", note, rows))
    if options.as_json:
        python = {"python": sys.version.split()[0], "python_optimised": this_one(), **around}
        found = figures if options.scenario == "all" else {"scenario": names[0], **figures[names[0]]}
        print(json.dumps(python | found))
    else:
        _print(figures, rows)
    return 0 if all(row.good for row in rows) else 1


def _held_against(name: str, options: BenchOptions) -> str:
    """The bounds of a scenario, where its engine or its client has bounds of its own."""
    if name == KAFKA:
        return f"{name}-{options.client}"
    return f"{name}-{options.engine}" if f"{name}-{options.engine}" in ASKED else name


def _median_of(name: str, options: BenchOptions) -> Figures:
    """The median of each figure over the runs."""
    if name == RIVALS and not _on_kafka(options):
        scenario, usual = _rivals_on(options)
    elif name in (KAFKA, RIVALS):
        scenario, usual = _with_kafka(options, name)
    else:
        scenario, usual = on_engine(name, options.engine, options.client), FORMS[name].size
    size = usual if options.items is None else options.items
    runs: list[Figures] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        for number in range(options.runs):
            task = progress.add_task(name, total=1.0)

            def show(what: str, share: float, task: Any = task, number: int = number) -> None:
                progress.update(task, description=f"{name} {number + 1}/{options.runs}: {what}", completed=share)

            before = yardstick_us()
            with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
                found = until_told(loop.run, scenario(Path(folder), size, show))
            runs.append({**found, "yardstick_us": (before + yardstick_us()) / 2})
            progress.remove_task(task)
    return {figure: median([run[figure] for run in runs]) for figure in runs[0]}


def _on_kafka(options: BenchOptions) -> bool:
    return options.engine in ("", KAFKA)


def _with_kafka(options: BenchOptions, name: str) -> tuple[Scenario, float]:
    if not _on_kafka(options):
        raise InvalidRequest(f"--engine {options.engine} is not for the scenario {name}")
    from .kafka import Broker
    from .kafka_server import kafka_broker

    against = _against(options) if name == RIVALS else []

    async def scenario(folder: Path, size: float, progress: Telling) -> Figures:
        progress("starting a broker", 0.0)
        with kafka_broker(folder / "kafka", options.kafka) as address:
            broker = Broker(address, options.client)
            if name == KAFKA:
                return await broker.kafka(folder, int(size), progress)
            from .rivals.on_kafka import rivals

            return await rivals(broker, against, folder, int(size), progress)

    return scenario, KAFKA_ITEMS


def _against(options: BenchOptions) -> list[Any]:
    """The rivals that were asked for. Raises InvalidRequest in an installed package, which has none."""
    if importlib.util.find_spec(".rivals", __package__) is None:
        raise InvalidRequest(f"the scenario {RIVALS} is not in the installed package: it needs a clone of tailrace")
    from .rivals.roster import chosen

    return chosen(options.against, options.engine or KAFKA)


def _rivals_on(options: BenchOptions) -> tuple[Scenario, float]:
    against = _against(options)
    from .rivals.on_queues import queue_rivals  # its engines need their extras

    async def scenario(folder: Path, size: float, progress: Telling) -> Figures:
        return await queue_rivals(folder, int(size), progress, options.engine, against, options.part)

    return scenario, QUEUE_ITEMS


def _rivals_drawn(figures: Figures, options: BenchOptions) -> str:
    """The picture of the scenario `rivals`: items a second, the fastest first, and the waits for a start."""
    kafka = _on_kafka(options)
    where = "broker" if kafka else "server"
    title = "tailrace bench: rivals" + ("" if kafka else f", {options.engine}")
    own = f"tailrace, {options.client}" if kafka else "tailrace"
    pictures = []
    if rates := _by_rival(figures, "items_per_s", own):
        note = f"items a second, median of {options.runs} on this machine, on the same {where}"
        pictures.append(compared(title, note, sorted(rates.items(), key=lambda each: -each[1])))
    if middles := _by_rival(figures, "p50_ms", own):
        slow = _by_rival(figures, "p99_ms", own)
        rows = sorted((wait, slow[name], name) for name, wait in middles.items())
        note = "milliseconds from submission to start at 200 a second: median, and 99th percentile in pale"
        pictures.append(waited(title, note, [(name, wait, late) for wait, late, name in rows]))
    return stacked(pictures)


def _by_rival(figures: Figures, figure: str, own: str) -> dict[str, float]:
    """One figure of each rival that has it."""
    found = {own: figures[figure]} if figure in figures else {}
    end = f"_{figure}"
    return found | {name.removesuffix(end): value for name, value in figures.items() if name.endswith(end)}


def _sizes(figures: Figures, options: BenchOptions) -> str:
    """The picture of the scenario `plateau`: the size of the store over its run."""
    from .plateau import series

    note = f"megabytes over {figures['items']:,.0f} completions, of which {figures['kept']:,.0f} are kept"
    return curve(f"tailrace bench: plateau, {options.engine or 'sqlite'}", note, series(figures), "MB")


def _print(figures: dict[str, Figures], rows: list[Bar]) -> None:
    console = Console()
    if this_one() is False:
        console.print(f"[yellow]{ADVICE}[/]")
    table = Table("figure", "measured", "target", "")
    for row in rows:
        sign = "≥" if row.at_least else "≤"
        verdict = "[green]holds[/]" if row.good else "[red]not reached[/]"
        table.add_row(row.label, f"{row.value:,.2f} {row.unit}", f"{sign} {row.asked:,g}", verdict)
    console.print(table)
    for name, found in figures.items():
        console.print(name, {figure: round(value, 3) for figure, value in found.items()})
