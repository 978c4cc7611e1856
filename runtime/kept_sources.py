"""Sources that a worker keeps: each process that it starts later runs the files with which the worker started.

Executors are started at any time, after a crash or a number of runs, and load the modules again. A file that was
changed, broken or removed on the disk meanwhile (a deploy in place) would make a worker of two versions, or one that
can run nothing. So the supervisor keeps the text of the user's modules that it loaded, and gives an executor those that
are not on the disk any more as they were. Libraries that are installed, and modules that are loaded by a run, are not
kept.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import logging
import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

LOG = logging.getLogger("tailrace.runtime")

#: Bytes of sources that are kept, in all; beyond it a module is read from the disk, whatever is there.
MOST = 64 << 20
#: Name, file, whether it is a package, source.
KeptRow = tuple[str, str, bool, bytes]
_PACKAGE = __name__.partition(".")[0]


@dataclass(slots=True)
class KeptModule:
    """A module of the user's as it was loaded. `mark` tells whether the file is still the same one."""

    name: str
    path: str
    package: bool
    source: bytes
    mark: tuple[int, ...]


class KeptSources:
    """The modules of this process that are the user's, as they are now."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._modules: list[KeptModule] = []
        self._told: set[str] = set()
        libraries = tuple({f"{path}{os.sep}" for path in sysconfig.get_paths().values()})
        room = MOST
        for module in modules:
            path = getattr(module, "__file__", None) or ""
            name = module.__name__
            ours = name == "__main__" or name.partition(".")[0] == _PACKAGE
            if ours or not path.endswith(".py") or path.startswith(libraries):
                continue
            try:
                mark = _mark(path)
                source = Path(path).read_bytes()
            except OSError:
                continue
            room -= len(source)
            if room >= 0:
                self._modules.append(KeptModule(name, path, hasattr(module, "__path__"), source, mark))

    def changed(self) -> list[KeptRow]:
        """The modules whose files are not as they were. It reads the disk, so it belongs into a thread."""
        rows = [(each.name, each.path, each.package, each.source) for each in self._modules if _differs(each)]
        fresh = {path for _, path, _, _ in rows} - self._told
        if fresh:
            self._told |= fresh
            LOG.warning(
                "%s changed since this worker started: its processes run what it started with; restart it to run the "
                "files that are there now",
                ", ".join(sorted(fresh)[:3]) + (f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""),
            )
        return rows


class KeptLoader(importlib.abc.SourceLoader):
    """Loads a module from a kept source. No bytecode is read or written: that beside the file belongs to the file."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source

    def get_filename(self, fullname: str) -> str:
        """The file that it was."""
        return self._path

    def get_data(self, path: Any) -> bytes:
        """The source as it was."""
        return self._source


class KeptFinder(importlib.abc.MetaPathFinder):
    """Finds kept modules before all others. `by_path` has those too that are loaded by their file."""

    def __init__(self, rows: Sequence[KeptRow]) -> None:
        self._by_name = {name: (path, package, source) for name, path, package, source in rows}
        self.by_path = {path: source for _, path, _, source in rows}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The spec of a kept module; None: it is not kept."""
        found = self._by_name.get(fullname)
        if found is None:
            return None
        file, package, source = found
        places = [os.path.dirname(file)] if package else None  # noqa: PTH120 - as the import system writes it
        loader = KeptLoader(file, source)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=places)


def serve(rows: Sequence[KeptRow]) -> None:
    """Has this process import these modules as they were."""
    if rows:
        sys.meta_path.insert(0, KeptFinder(rows))


def loader_of(path: Path) -> KeptLoader | None:
    """The loader of a kept file; None: it is not kept."""
    finder = sys.meta_path[0]
    source = finder.by_path.get(str(path)) if isinstance(finder, KeptFinder) else None
    return None if source is None else KeptLoader(str(path), source)


def _mark(path: str) -> tuple[int, ...]:
    found = Path(path).stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _differs(each: KeptModule) -> bool:
    try:
        mark = _mark(each.path)
        if mark == each.mark:
            return False
        if Path(each.path).read_bytes() != each.source:
            return True
        each.mark = mark
    except OSError:
        return True
    return False
