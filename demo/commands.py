"""`tailrace demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..sdk.terminal import Json


def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Keep everything here; default: a folder that is removed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A guided run on real input: catalogues this Python's standard library, with faults, in half a minute."""
    from .run import Options, main

    raise typer.Exit(main(Options(data=data, as_json=as_json)))
