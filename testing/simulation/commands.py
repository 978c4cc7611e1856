"""`tailrace simulate`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from ...foundation.terminal import Json
from ...model.errors import UserError


def simulate(
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="Number of worlds.")] = 300,
    first: Annotated[int, typer.Option("--from", min=0, metavar="SEED", help="Seed of the first world.")] = 0,
    seed: Annotated[int | None, typer.Option("--seed", metavar="SEED", help="Seed of the only world.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="With --seed: print each event, with its time and host.")
    ] = False,
    faults: Annotated[
        str | None, typer.Option("--faults", metavar="I,J,…", help="With --seed: only these faults (-: none).")
    ] = None,
    items: Annotated[
        str | None, typer.Option("--items", metavar="I,J,…", help="With --seed: only these items (-: none).")
    ] = None,
    bug: Annotated[str, typer.Option("--bug", metavar="NAME", help="Plant a known mistake, to see it found.")] = "",
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Look for a smaller plan that still fails.")
    ] = True,
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, metavar="N", help="Number of processes; default: one per processor.")
    ] = 0,
    bugs: Annotated[
        bool, typer.Option("--bugs", help="Count the worlds until each known mistake (or that of --bug) is found.")
    ] = False,
    finds: Annotated[
        int, typer.Option("--finds", min=1, metavar="N", help="With --bugs: go on to the next mistake after N finds.")
    ] = 20,
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes", min=0, metavar="M", help="With --bugs: begin nothing new after M minutes; 0: no end."
        ),
    ] = 0.0,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FILE", help="With --bugs: keep the results in a file, and go on from it."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Keep a record of the messages to and from tailers.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="Compare with the record that another version kept."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the platform in seeded worlds of virtual time, lost messages and dying hosts. Exit code 1 when a promise is
    broken in any of them.

    With --bugs known mistakes take turns, each planted in --seeds worlds at most or until it was found --finds times.
    Known mistakes come with a clone of the repository, not with the installed package.

    With --record one version of the platform keeps a record of what its tailers did; with --against another version
    says how much of that is the same. Exit code 1 also when an item's runs ended otherwise.
    """
    from . import hunt
    from .run import SimulateOptions, main

    known = _mistakes() if bug or bugs else []
    if bug and bug not in known:
        raise UserError(f"--bug {bug!r} is not known; expected one of {', '.join(known)}")
    if (record or against) and (trace or bugs):
        raise UserError("--record and --against compare whole runs: leave --trace or --bugs out")
    if bugs:
        of = [bug] if bug else known
        wanted = hunt.HuntOptions(of, seeds, first, finds, 60 * minutes, results, jobs or os.cpu_count() or 1, as_json)
        raise typer.Exit(hunt.main(wanted))
    only = (_indexes(faults), _indexes(items))
    raise typer.Exit(
        main(SimulateOptions(seeds, first, seed, trace, *only, bug, shrink, jobs, as_json, record, against))
    )


def _mistakes() -> list[str]:
    """The names of the mistakes that can be planted. Raises UserError in an installed package, which has none."""
    if importlib.util.find_spec(".bugs", __package__) is None:
        raise UserError("--bug and --bugs need a clone of tailrace: the installed package has no known mistakes")
    from .bugs import BUGS

    return sorted(BUGS)


def _indexes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",") if part not in ("", "-")]
    except ValueError:
        raise UserError(f"{text!r}: expected numbers with commas between them, such as 0,2, or - for none") from None
