"""The input of the demo: the `.py` files of this machine's standard library, listed without the platform's help."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from ..model.errors import InvalidRequest

#: Folders that are not the standard library though they lie in it.
EXCLUDED = ("site-packages", "dist-packages", "__pycache__")

#: Two files that do not parse, so that there are some wherever the standard library comes without its tests.
BROKEN = {
    "unfinished.py": "def answer(:\n    return 42\n",
    "python_two.py": 'print "this was Python once"\n',
}


def standard_library() -> Path:
    """The folder of the standard library. Raises InvalidRequest when this Python keeps it in an archive."""
    folder = Path(sysconfig.get_path("stdlib"))
    if not (folder / "ast.py").is_file():
        raise InvalidRequest(
            f"{folder}: the standard library is not a folder of files here; run the demo with another Python"
        )
    return folder


def python_files(root: Path) -> list[str]:
    """The names of the `.py` files below `root`, relative to it, in order."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in EXCLUDED)
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".py") and path.is_file():
                found.append(path.relative_to(root).as_posix())
    return found


def spread(names: list[str], count: int) -> list[str]:
    """`count` of the names, spread evenly over all of them (all, when there are no more)."""
    if count >= len(names):
        return names
    return [names[index * len(names) // count] for index in range(count)]


def link(root: Path, names: list[str], folder: Path) -> Path:
    """Fills `folder` with links to these files of `root`, under the same names, for a shorter run; returns it."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(root / name)
    return folder


def write_broken(folder: Path) -> list[Path]:
    """Writes the files that do not parse; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in BROKEN.items():
        (folder / name).write_text(text)
    return [folder / name for name in sorted(BROKEN)]
