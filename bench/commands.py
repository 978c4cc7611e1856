"""`tailrace bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..sdk.terminal import Json


def bench(
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="NAME", help="stream, queue, latency, memory, idle, or all.")
    ] = "all",
    items: Annotated[
        float | None, typer.Option("--items", min=1, help="Items, or seconds where the scenario measures over time.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=100, help="So many runs; their median counts.")] = 1,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Write the figures as SVG.")] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine: real processes, the platform as you would run it. Exit code 1 when a bound is missed."""
    from .run import Options, main

    raise typer.Exit(main(Options(scenario, items, runs, as_json, plot)))
