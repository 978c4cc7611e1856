"""Commands about tailers: check tailer files, list the tailers that run, show the schema of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json
from ...sdk import found_gateway
from .control import forget, pause, resume, seek
from .drops import tailer_drops

tailer = typer.Typer(help="Tailers, which read your sources.", no_args_is_help=True, rich_markup_mode=None)


@tailer.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Tailer files, or folders with such files.")],
    as_json: Json = False,
) -> None:
    """Check tailer files without running anything. Exit code 2 when a file is wrong."""
    from ...foundation.config import load
    from ...model.errors import ConfigError
    from ..config import TailerConfig
    from ..tailer_files import listed

    rows: list[dict[str, Any]] = []
    names: dict[str, Path] = {}
    found = [each for path in files for each in (listed(path) if path.is_dir() else [path])]
    if not found:
        raise ConfigError(f"{', '.join(map(str, files))}: no file of a tailer (*.yaml) in it; put one there")
    for file in found:
        row: dict[str, Any] = {"file": str(file), "ok": True, "errors": []}
        try:
            config = load(file, TailerConfig)
            row |= {"tailer": config.name, "kind": str(config.source["kind"])}
            if config.name in names:
                raise ConfigError(f"{file}: the tailer {config.name!r} is also in {names[config.name]}: rename one")
            names[config.name] = file
        except ConfigError as error:
            row |= {"ok": False, "errors": str(error).splitlines()}
        rows.append(row)
    if as_json:
        terminal.show_json(rows)
    for row in [] if as_json else rows:
        if row["ok"]:
            terminal.say(f"{row['file']}: right (tailer {row['tailer']}, kind {row['kind']})")
        for line in row["errors"]:
            terminal.complain(line)
    if not all(row["ok"] for row in rows):
        raise typer.Exit(terminal.WRONG_INPUT)


@tailer.command("list")
def tailer_list(
    gateway: GatewayAddress = None,
    as_json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 when a tailer has work and makes no progress, with the cause.")
    ] = False,
) -> None:
    """List the running tailers of all processes, with their counts since they started."""
    from dataclasses import asdict

    found = found_gateway.ask(gateway, lambda client: client.overview()).tailers
    rows = [asdict(each) | {"state": each.shown_state} for each in found]
    for row in rows:
        row["lag"] = None if row["lag"] < 0 else row["lag"]
        row["since"] = terminal.moment(row["since"]) if row["since"] else None
    columns = [
        "name",
        "kind",
        "state",
        "read",
        "settled",
        "parked",
        "dead",
        "dropped",
        "lost",
        "unreadable",
        "in_flight",
        "held",
        "lag",
        "unaccounted",
        "since",
        "detail",
        *(["process"] if any(row["process"] for row in rows) else []),
    ]
    terminal.show(rows, columns, as_json, empty="no tailer runs")
    unhealthy = [row for row in rows if not row["healthy"]]
    for row in unhealthy if check else []:
        terminal.complain(f"{row['name']}: nothing done for {row['idle']:.0f} s, lag {row['lag']}: {row['why']}")
    if check and unhealthy:
        raise typer.Exit(terminal.FAILED)


tailer.command("drops")(tailer_drops)
tailer.command("pause")(pause)
tailer.command("resume")(resume)
tailer.command("seek")(seek)
tailer.command("forget")(forget)


@tailer.command()
def schema() -> None:
    """Print the JSON Schema of a tailer file, for editors."""
    import json

    from ..schema import PACKAGED

    terminal.show_json(json.loads(PACKAGED.read_text(encoding="utf-8")))
