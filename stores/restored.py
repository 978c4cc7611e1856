"""A stamp beside the files of a data directory: it tells whether they were put back from a copy since they were last
open.

It names each file by its inode, by the mark that the last run gave it, and after a clean close by the time of its last
change. A copy has another inode; an earlier run's copy that was written over the file itself has another mark, and a
copy of the same run another time, even when the stamp came along with it. The stamp cannot tell a copy of a running
store that was written over the same file after that run died: for this there is `tailrace store restored`.

The mark is a random number in the file's own header, another one in each run: odd, and even from the run's last write
on. So a file that was changed after that is known all the same: its log was written back later, by a replicator that
had kept it. And a log that was left behind by a run that died is known as that of another file, into which it would be
played. A run that waits since files were put back notes their marks too, without their inodes: the next run finds them
put back as well, with a log of their own.

A file that the stamp knows and that is missing or empty is no new store: nobody starts over it before an operator says
that the store begins anew (`begin_anew`). Its entry is empty then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from ..model.errors import ConfigError
from .sqlite.backup import sync
from .sqlite.connecting import closed_mark

STAMP = "tailrace.stamp"
#: Offset and length, in bytes, of SQLite's user version in a file's header, which is our mark.
_MARK_AT, _MARK_LENGTH = 60, 4
NO_MARKS: Mapping[str, int] = {}
#: A number that is no file's inode.
_NONE = 0


def mark_of(file: Path) -> int:
    """The mark in a database's header, without changes in a write-ahead log; 0: it has none. It may be read only while
    this process has not opened the file by SQLite: closing the file here would release all of its locks, and the next
    process that closes the database would remove the write-ahead log under us."""
    with file.open("rb") as opened:
        opened.seek(_MARK_AT)
        return int.from_bytes(opened.read(_MARK_LENGTH), "big")


class Stamp:
    """The stamp of files in one directory, which this process alone uses. `beside`: files of another store there, of
    which it only knows that they are."""

    def __init__(self, folder: Path, files: Sequence[str], beside: Sequence[str] = ()) -> None:
        self._path = folder / STAMP
        self._files = [folder / name for name in files]
        self._beside = [folder / name for name in beside]
        self.names = tuple(files)

    def refuse_gone(self) -> None:
        """Raises ConfigError where a file is missing or empty that the last run left with a store in it."""
        gone = [name for name, entry in self._known().items() if entry and self._is_gone(name)]
        if gone:
            files = " and ".join(f"{self._path.with_name(name)} is {self._how(name)}" for name in gone)
            raise ConfigError(
                f"{files}, and the last run left a store there: to start over it would forget all that was in it. Put "
                "back what is missing, or all of it from a backup (`tailrace store restore`, into an empty directory). "
                "If the store is to begin anew, without anything that was in it: "
                + " and ".join(f"`tailrace store begin-anew {name} --data {self._path.parent}`" for name in gone)
            )

    def begin_anew(self, name: str) -> None:
        """Has the next run make a store that is gone, and wait as if it had been put back from a copy. Raises
        ConfigError for a file that is not gone, or that was none of a store."""
        known = self._known()
        if not known.get(name) or not self._is_gone(name):
            why = "has something in it: move it away first" if known.get(name) else "was no store of the last run"
            raise ConfigError(f"{self._path.with_name(name)} {why}. Nothing was changed")
        for left in (name, f"{name}-wal", f"{name}-shm"):
            self._path.with_name(left).unlink(missing_ok=True)
        self._write({**known, name: []})

    def _is_gone(self, name: str) -> bool:
        ours = any(file.name == name for file in [*self._files, *self._beside])
        return ours and self._how(name) != ""

    def _how(self, name: str) -> str:
        try:
            return "" if self._path.with_name(name).stat().st_size else "empty"
        except FileNotFoundError:
            return "missing"

    def moved(self) -> list[str]:
        """The names of files that are not as the last run left them. In a directory without a stamp that is every file.
        Raises ConfigError where the write-ahead log beside such a file belongs to another file."""
        known = self._known()
        found = []
        for file in self._files:
            if known.get(file.name) == []:
                found.append(file.name)
                continue
            if not file.exists() or (known and file.name not in known):
                continue  # a stamp of a version that did not know this file
            inode, changed, *marks = known.get(file.name, (None, None))
            now = file.stat()
            mark = mark_of(file)
            another = bool(marks) and mark not in marks and mark | 1 not in marks
            written_back = bool(marks) and mark == closed_mark(marks[-1] or 0)
            if another:
                _refuse_leftovers(file)
            changed_since = changed not in (None, now.st_ctime_ns) and not written_back
            if another or inode != now.st_ino or changed_since:
                found.append(file.name)
        return found

    def opening(self, marks: Mapping[str, int], moved: Collection[str] = ()) -> None:
        """Notes that the files are about to get these marks: until that is done, they have their former ones. The files
        in `moved` were put back, and the next run is to find that as well."""
        known = self._known()
        for file in self._there():
            if file.name in moved:
                known[file.name] = [_NONE, None, mark_of(file), marks[file.name]]
            elif known.get(file.name):
                inode, _, *former = known[file.name]
                known[file.name] = [inode, None, *former, marks[file.name]]
        self._write(known)

    def opened(self, marks: Mapping[str, int] = NO_MARKS, moved: Collection[str] = ()) -> None:
        """Notes that the files are open, so that their changes say nothing. `marks` are of files that have their new
        ones; the others may have their former ones. `moved` as in `opening`."""
        self._note(marks, moved, lambda file: None)

    def closed(self, marks: Mapping[str, int] = NO_MARKS, moved: Collection[str] = ()) -> None:
        """Notes that the files are closed: from now on a change of a file was made by another process."""
        self._note(marks, moved, lambda file: file.stat().st_ctime_ns)

    def _note(self, marks: Mapping[str, int], moved: Collection[str], changed: Callable[[Path], int | None]) -> None:
        known = self._known()
        noted: dict[str, list[int | None]] = {}
        for file in self._there():
            inode = _NONE if file.name in moved else file.stat().st_ino
            mark = [marks[file.name]] if file.name in marks else known.get(file.name, [])[2:]
            noted[file.name] = [inode, changed(file), *mark]
        noted |= {file.name: [file.stat().st_ino, None] for file in self._beside if file.exists()}
        self._write(noted)

    def _there(self) -> list[Path]:
        return [file for file in self._files if file.exists()]

    def _known(self) -> dict[str, list[int | None]]:
        try:
            return dict(json.loads(self._path.read_text()))
        except (OSError, ValueError):
            return {}

    def forget(self) -> None:
        """Removes the stamp: the next run finds every file put back."""
        self._path.unlink(missing_ok=True)

    def _write(self, known: Mapping[str, Sequence[int | None]]) -> None:
        if not known:
            return  # no file is here: the databases of a simulation are elsewhere
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(known))
        sync(beside)  # the marks of which it tells survive a power cut too
        beside.replace(self._path)
        sync(self._path.parent)


def _refuse_leftovers(file: Path) -> None:
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        raise ConfigError(
            f"{log} was left behind by a run that died, and {file.name} was put back from a copy since: SQLite would "
            f"play that log into the copy, and damage it. If the copy is complete (made by `tailrace store backup`, "
            f"or of a stopped node), remove {log.name} and {file.name}-shm. If the log came along with the copy, "
            f"remove {STAMP} instead. Better: `tailrace store restore` into an empty directory"
        )
