"""Were the files of a data directory put back from a copy since they were last open? A stamp beside them tells.

It names each file by its inode, and after a clean close by the time of its last change too: a copy has another inode,
and one that was written over the file itself has another time, whichever of them came along with it. What it cannot see
is a copy of a running store that was written over the same file; `tailrace store restored` says so by hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

STAMP = "tailrace.stamp"


class Stamp:
    """Of the files in one directory that this process alone uses."""

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._path = folder / STAMP
        self._files = [folder / name for name in files]

    def moved(self) -> list[str]:
        """The names of files that are not what the last run left. A directory without a stamp was left by nobody."""
        try:
            known = json.loads(self._path.read_text())
        except (OSError, ValueError):
            known = {}
        found = []
        for file in self._files:
            if not file.exists():
                continue
            inode, changed = known.get(file.name, (None, None))
            now = file.stat()
            if inode != now.st_ino or changed not in (None, now.st_ctime_ns):
                found.append(file.name)
        return found

    def opened(self) -> None:
        """The files are open: their changes say nothing."""
        self._write({file.name: (file.stat().st_ino, None) for file in self._files if file.exists()})

    def closed(self) -> None:
        """The files are closed, and whoever changes them now is not us."""
        stats = {file.name: file.stat() for file in self._files if file.exists()}
        self._write({name: (stat.st_ino, stat.st_ctime_ns) for name, stat in stats.items()})

    def forget(self) -> None:
        """The next run finds everything put back."""
        self._path.unlink(missing_ok=True)

    def _write(self, known: dict[str, tuple[int, int | None]]) -> None:
        if not known:
            return  # no file is here: the databases of a simulation are elsewhere
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(known))
        beside.replace(self._path)
