"""Fleets and stores: a store is of the first fleet that said so, and of no other. Two that share one by mistake would
run each other's work.

Asked where a store is opened: of a queue, a state and a delay log on a server, and of a data directory, each by itself,
since each may be given by itself. A platform without certificates is of no fleet: it says nothing, and takes any store;
with its first certificates it takes over what it has.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..model.errors import ConfigError

#: In a data directory: the fleet that it is of.
NAME = "tailrace.fleet"


def refuse_another(store: str, owner: str, fleet: str, instead: str) -> None:
    """Raises ConfigError where the store is not of this fleet. `instead` is what else could be given."""
    if owner != fleet:
        raise ConfigError(
            f"{store} is of fleet {owner}, and this is fleet {fleet}: two fleets that share one would run each other's "
            f"work. Give one of them {instead}; or if that is to be this fleet's from now on, certificates of its "
            f"name: `tailrace auth init DIR --fleet {owner}`"
        )


def refuse_folder_of_another(folder: Path, fleet: str) -> None:
    """Raises ConfigError where a data directory, which this process has, was noted as another fleet's."""
    file = folder / NAME
    if fleet and file.exists():
        refuse_another(f"the data directory {folder}", file.read_text().strip(), fleet, "another `--data`")


def note_in(folder: Path, fleet: str) -> None:
    """Notes of which fleet a data directory is."""
    file = folder / NAME
    if not fleet or file.exists():
        return
    beside = file.with_suffix(".new")
    with beside.open("w") as note:
        note.write(f"{fleet}\n")
        note.flush()
        os.fsync(note.fileno())
    beside.replace(file)
