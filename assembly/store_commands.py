"""The commands `tailrace store …`: the embedded stores served, migrated, copied and put back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..foundation import terminal

Config = Annotated[Path | None, typer.Option("--config", metavar="DIR", help="Configuration directory.")]
Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", envvar="TAILRACE_DATA", help="Folder of the embedded stores.")
]
Listen = Annotated[str | None, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on.")]
DEFAULT_DATA = Path(".tailrace")

store = typer.Typer(help="The embedded stores.", no_args_is_help=True, rich_markup_mode=None)


@store.command("serve")
def store_serve(listen: Listen = None, data: Data = DEFAULT_DATA, config: Config = None) -> None:
    """Serve the embedded stores to parts that run apart from them."""
    from . import foreground, parts

    raise typer.Exit(foreground.run_part(parts.StoreSettings(config=config, listen=listen, data=data)))


@store.command("migrate")
def store_migrate(
    config: Config = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show the steps that would be taken.")] = False,
    json: terminal.Json = False,
) -> None:
    """Bring the schema of stores on a server up to this version of tailrace. Stop the parts that use it first."""
    from .migrating import migrate

    migrate(config, plan, json)


@store.command("backup")
def store_backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the copies.")],
    data: Data = DEFAULT_DATA,
    json: terminal.Json = False,
) -> None:
    """Copy the embedded stores as they are at one moment, while a node runs on them or not."""
    from .backup import back_up

    back_up(folder, data, json)


@store.command("restore")
def store_restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `tailrace store backup` made.")],
    data: Data = DEFAULT_DATA,
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Keep all tokens of the backup, those revoked since too.")
    ] = False,
    json: terminal.Json = False,
) -> None:
    """Put a backup back, into a data directory without stores. The first run hands nothing out for the lease of a
    source. Tokens that were revoked since do not come back; where nobody knows which were, none does."""
    from .backup import put_back

    put_back(folder, data, json, keep_tokens)


@store.command("restored")
def store_restored(data: Data = DEFAULT_DATA) -> None:
    """Note that files were put back from a copy: the next run hands nothing out for the lease of a source. It notices
    most copies by itself."""
    from ..stores.data_dir import DataDir
    from ..stores.restored import Stamp
    from .embedded import STAMPED

    with DataDir(data):
        Stamp(data, STAMPED).forget()
    terminal.say(f"{data}: the next run waits for the lease of a source before it hands anything out")


@store.command("begin-anew")
def store_begin_anew(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The name of a file that is missing or empty: queue.db, …")
    ],
    data: Data = DEFAULT_DATA,
) -> None:
    """Let go of a store whose file is missing or empty: the next run begins it anew, without anything that was in it,
    and hands nothing out for the lease of a source. A node refuses to start over such a file otherwise."""
    from ..stores.data_dir import DataDir
    from ..stores.restored import Stamp
    from ..stores.spool.spool import FILE
    from .embedded import STAMPED

    with DataDir(data):
        Stamp(data, STAMPED, [FILE]).begin_anew(file)
    terminal.say(f"{data / file}: the next run begins it anew; nothing is handed out for the lease of a source then")


@store.command("rebind")
def store_rebind(data: Data = DEFAULT_DATA) -> None:
    """Have a state on a server go with the logs of this folder from the next run on, although a copy of the folder ran
    since: what was appended there is given up."""
    from ..stores.data_dir import DataDir
    from .log_binding import MEANT

    with DataDir(data):
        (data / MEANT).touch(mode=0o600)
    terminal.say(f"{data}: the state goes with the logs here from the next run on")
