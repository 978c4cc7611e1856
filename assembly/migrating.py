"""`tailrace store migrate`: the schemas of the stores that a configuration puts on a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..sdk import terminal
from ..sdk.model.errors import ConfigError
from ..stores.config import StoresConfig
from .settings import ConfigDirectory


def migrate(config: Path | None, plan: bool, as_json: bool) -> None:
    """Takes the steps that are lacking, or says which. Raises ConfigError where nothing is on a server."""
    choice = ConfigDirectory(config).read("stores.yaml", StoresConfig).queue
    if choice["engine"] != "postgres":
        raise ConfigError(
            "no store is on a server whose schema we keep: `queue` in stores.yaml has "
            f'the engine "{choice["engine"]}", expected postgres (name the configuration with --config DIR)'
        )
    from ..stores.migrations.postgres import bring_up
    from ..stores.postgres import PostgresOptions

    options = PostgresOptions.model_validate({key: value for key, value in choice.items() if key != "engine"})
    steps = asyncio.run(bring_up(options, plan=plan))
    rows = [{"step": step.number, "name": step.name} for step in steps]
    if as_json:
        terminal.show_json(rows)
        return
    where = f"{options.server}, schema {options.db_schema}"
    if not steps:
        terminal.say(f"{where}: is up to date")
    for step in steps:
        terminal.say(f"{where}: {'would take' if plan else 'took'} step {step.number} ({step.name})")
