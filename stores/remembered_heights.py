"""The heights (high-water marks) of a data directory's databases, remembered outside it: one small file in the user's
run directory.

A disk that is set back takes everything in the data directory along, the stamp too. This file is on another disk, if
the data directory has one of its own. It is named for the data directory, so a copy elsewhere is compared with nothing.
Numbers that were handed out since its last writing are not in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from ..model.height import Height, forgettable

#: The folder of these files in the run directory.
FOLDER = "stores"
#: Seconds between two writings at least.
PERIOD = 10.0
#: Most bytes of a file that are read.
_LARGEST = 1 << 16


class RememberedHeights:
    """Heights of one data directory, remembered in a run directory. Every method but `read` may raise OSError."""

    def __init__(self, run_dir: Path, data: Path) -> None:
        self._folder = run_dir / FOLDER
        name = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:32]
        self._path = self._folder / f"{name}.json"

    def read(self) -> dict[str, Height]:
        """The remembered heights by file; empty where there are none, or they cannot be read."""
        try:
            with self._path.open("rb") as file:
                said = json.loads(file.read(_LARGEST))
            return {name: Height(str(store), int(highest)) for name, (store, highest) in said.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def write(self, heights: Mapping[str, Height], wall: float) -> None:
        """Remembers these heights, whole or not at all, and forgets data directories that were not written for long.
        `wall` is the clock of file systems."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        beside = self._path.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w") as file:
            json.dump(heights, file)
        beside.replace(self._path)
        self._forget(wall)

    def _forget(self, wall: float) -> None:
        told_at = {}
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(FileNotFoundError):
                told_at[path.name] = path.stat().st_mtime
        for name in forgettable(told_at, wall):
            (self._folder / name).unlink(missing_ok=True)
