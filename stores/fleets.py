"""The fleet of a store: a store belongs to the first fleet that opened it, and to no other. Two fleets that share one
by mistake would run each other's work.

It is checked where a store is opened: a queue, a state and a delay log on a server, and a data directory, each by
itself, since each is configured by itself. A platform without certificates has no fleet: it notes nothing, and takes
any store. With its first certificates it takes over the stores that it has.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..model.errors import ConfigError

#: The file in a data directory that names its fleet.
NAME = "tailrace.fleet"


def refuse_another(store: str, owner: str, fleet: str, instead: str) -> None:
    """Raises ConfigError where the store belongs to another fleet. `instead` names the setting by which another store
    is given."""
    if owner != fleet:
        raise ConfigError(
            f"{store} is of fleet {owner}, and this is fleet {fleet}: two fleets that share a store would run each "
            f"other's work. Give one of the fleets {instead}; or, to go on with this store, make certificates with "
            f"the name of its fleet: `tailrace auth init DIR --fleet {owner}`"
        )


def refuse_folder_of_another(folder: Path, fleet: str) -> None:
    """Raises ConfigError where a data directory, which this process has locked, belongs to another fleet."""
    file = folder / NAME
    if fleet and file.exists():
        refuse_another(f"the data directory {folder}", file.read_text().strip(), fleet, "another `--data`")


def note_fleet(folder: Path, fleet: str) -> None:
    """Notes in a data directory to which fleet it belongs, unless that is noted already; nothing for a process without
    a fleet."""
    file = folder / NAME
    if not fleet or file.exists():
        return
    beside = file.with_suffix(".new")
    with beside.open("w") as note:
        note.write(f"{fleet}\n")
        note.flush()
        os.fsync(note.fileno())
    beside.replace(file)
