"""A data directory as a disk that is set back leaves it: older contents in the same files, and the stamp agrees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tailrace.stores.restored import STAMP


def set_back(data: Path, earlier: Path) -> None:
    """Gives `data` the contents of `earlier`, a copy of it. Nobody may have its files open. A snapshot of a volume
    keeps inodes and times; here the stamp is told those that the files have instead."""
    kept = {file.name for file in earlier.iterdir()}
    for file in data.iterdir():
        if file.name not in kept:
            file.unlink()
    for file in earlier.iterdir():
        shutil.copyfile(file, data / file.name)
    stamp = json.loads((data / STAMP).read_text())
    for name, known in stamp.items():
        now = (data / name).stat()
        known[0] = now.st_ino
        known[1] = None if known[1] is None else now.st_ctime_ns
    (data / STAMP).write_text(json.dumps(stamp))
