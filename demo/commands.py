"""The command `tailrace demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..foundation.terminal import Json


def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder for the run's data; default: a temporary folder."),
    ] = None,
    files: Annotated[
        int | None,
        typer.Option("--files", metavar="N", help="Number of files of the standard library; default: all."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A guided run on real input: catalogues this Python's standard library, with faults, in half a minute."""
    from .run import run_demo

    raise typer.Exit(run_demo(data, files, as_json))
