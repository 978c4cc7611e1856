"""`tailrace store migrate`: the schemas of the stores that a configuration puts on a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..foundation import terminal
from ..model.errors import ConfigError
from ..stores.config import StoresConfig
from ..stores.engines import Engines
from ..stores.queue.engines import ENGINES as QUEUES
from ..stores.state.engines import ENGINES as STATES
from .settings import ConfigDirectory

if TYPE_CHECKING:
    from ..stores.postgres.server import PostgresOptions


def migrate(config: Path | None, plan: bool, as_json: bool) -> None:
    """Takes the migration steps that are lacking, or says which (`plan`). Raises ConfigError where no store is on a
    server."""
    places = schemas_of(ConfigDirectory(config).read("stores.yaml", StoresConfig))
    from ..stores.postgres.migrations.migrate import bring_up

    rows: list[dict[str, object]] = []
    for options in places:
        steps = asyncio.run(bring_up(options, plan=plan))
        rows += [{"step": step.number, "name": step.name, "schema": options.db_schema} for step in steps]
        where = f"{options.server}, schema {options.db_schema}"
        if not as_json:
            said = [f"{'would take' if plan else 'took'} step {step.number} ({step.name})" for step in steps]
            for each in said or ["is up to date"]:
                terminal.say(f"{where}: {each}")
    if as_json:
        terminal.show_json(rows)


def schemas_of(config: StoresConfig) -> list[PostgresOptions]:
    """The schemas that stores of this configuration are in, each once."""
    chosen = {"queue": config.queue, "state": config.state}
    engines_of: dict[str, Engines[Any]] = {"queue": QUEUES, "state": STATES}
    there = [engines_of[name].options_of(choice) for name, choice in chosen.items() if choice["engine"] == "postgres"]
    if not there:
        engines = " and ".join(f'`{name}` has the engine "{choice["engine"]}"' for name, choice in chosen.items())
        raise ConfigError(
            f"no store is on a server whose schema we keep: in stores.yaml {engines}, expected postgres in one of them "
            "(name the configuration with --config DIR)"
        )
    return list({(each.server, each.db_schema): each for each in there}.values())
