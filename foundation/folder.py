"""Safe reads of the files below a folder: nothing that somebody puts there leads out of it, or makes a reader wait.

Each part of a name is opened from the folder before it (openat), so that no link stands in for any part, not even one
that was put there a moment ago. A name is looked at, opened without waiting, and looked at again: only regular files
are read, and never more bytes than were asked for.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from .births import AnotherFolder, birth_of, is_remade

_COMMON = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER, _FILE = _COMMON | os.O_DIRECTORY, _COMMON | os.O_NOCTTY
#: Bytes of one read.
_BLOCK = 1 << 20
#: The most folders inside each other that are listed: each is open meanwhile.
DEEPEST = 100
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link; follow_links is off",
}


class NoFile(Exception):
    """A name stands for something that is no readable file; the text says what it is."""


def kind_of(mode: int) -> str:
    """The kind of something that is no regular file, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")


def open_root(root: Path, birth: str = "") -> int:
    """A descriptor of a folder that its user named, which may be a link. Raises OSError; AnotherFolder when it is not
    the one with that birth."""
    descriptor = open_folder(root, follow=True)
    if birth and birth_of(descriptor) not in ("", birth):
        os.close(descriptor)
        raise AnotherFolder
    return descriptor


def birth_at(root: Path) -> str:
    """The birth of a folder; empty where the system does not tell, or tells one that may change. Raises OSError."""
    descriptor = open_root(root)
    try:
        return "" if is_remade(root) else birth_of(descriptor)
    finally:
        os.close(descriptor)


def open_folder(name: str | Path, *, follow: bool, within: int | None = None) -> int:
    """A descriptor of a folder. Raises OSError; NotADirectoryError or ELOOP for a link where none is followed."""
    return os.open(name, _FOLDER | (0 if follow else os.O_NOFOLLOW), dir_fd=within)


class Folder:
    """Reads files below one folder; for one thread. The folder itself may be a link, since its user named it. With a
    `birth` no other folder will do.

    Invariant: `_open` has the folders from the root to the one that was used last, with names and descriptors.
    """

    def __init__(self, root: Path, *, follow: bool, birth: str = "") -> None:
        self._root = root
        self._birth = birth
        self._follow = follow
        self._open: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        self._open.append(("", open_root(self._root, self._birth)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close(0)

    def facts(self, name: str) -> os.stat_result:
        """The facts about a file, as by stat. Raises NoFile, OSError."""
        *folders, last = name.split("/")
        found = os.stat(last, dir_fd=self._enter(folders), follow_symlinks=self._follow)
        if not stat.S_ISREG(found.st_mode):
            raise NoFile(f"it is {kind_of(found.st_mode)}")
        return found

    def read(self, name: str, most: int) -> tuple[os.stat_result, bytes | None]:
        """The facts about a file, and its content; None when the content is longer than `most` bytes. Raises NoFile,
        OSError."""
        found = self.facts(name)
        if found.st_size > most:
            return found, None
        opened, content = self.part(name, 0, most + 1)
        return opened, content if len(content) <= most else None

    def part(self, name: str, start: int, length: int) -> tuple[os.stat_result, bytes]:
        """The facts about a file, and its bytes from `start` on; fewer than `length` at its end. Raises NoFile,
        OSError."""
        self.facts(name)
        link = 0 if self._follow else os.O_NOFOLLOW
        descriptor = os.open(name.rpartition("/")[2], _FILE | link, dir_fd=self._open[-1][1])
        try:
            opened = os.fstat(descriptor)
            if not stat.S_ISREG(opened.st_mode):  # it was put there between the two looks
                raise NoFile(f"it is {kind_of(opened.st_mode)}")
            content = bytearray()
            while left := length - len(content):
                piece = os.pread(descriptor, min(_BLOCK, left), start + len(content))
                if not piece:
                    break
                content += piece
        finally:
            os.close(descriptor)
        return opened, bytes(content)

    def _enter(self, folders: list[str]) -> int:
        """The descriptor of a folder below, opened part by part."""
        same = 0
        while same < len(folders) and same + 1 < len(self._open) and self._open[same + 1][0] == folders[same]:
            same += 1
        self._close(same + 1)
        for depth in range(same, len(folders)):
            part, within = folders[depth], self._open[-1][1]
            try:
                descriptor = open_folder(part, follow=self._follow, within=within)
            except OSError as error:
                if not self._follow and error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                    found = os.stat(part, dir_fd=within, follow_symlinks=False)
                    if stat.S_ISLNK(found.st_mode):
                        where = "/".join(folders[: depth + 1])
                        raise NoFile(f"{where} is {kind_of(found.st_mode)}") from None
                raise
            self._open.append((part, descriptor))
        return self._open[-1][1]

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            os.close(self._open.pop()[1])


class FoundFile(NamedTuple):
    """A regular file below a folder."""

    name: str
    facts: os.stat_result


class SkippedEntry(NamedTuple):
    """An entry that is no regular file, or was not entered or could not be read, with the reason. `hides`: there may be
    files behind it."""

    name: str
    why: str
    hides: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """The files below a folder, one after another.

    follow     also files and folders behind links, but no folder that is among its own parents
    wanted     whether a file is looked at, by its relative name
    enter      whether a folder is entered
    moves      called with what is done next
    birth      that of the folder, if no other one will do
    ordered    those of a folder by name; else as the system gives them, of which one at a time is in memory
    """

    follow: bool
    wanted: Callable[[str], bool] = lambda name: True
    enter: Callable[[str], bool] = lambda name: True
    moves: Callable[[str], None] = lambda doing: None
    birth: str = ""
    ordered: bool = True

    def files(self, root: Path) -> Generator[FoundFile | SkippedEntry]:
        """Yields every wanted file, and what was skipped; names that are no text as Python has them. Raises OSError
        when `root` itself cannot be read."""
        self.moves(f"listing {root}")
        descriptor = open_root(root, self.birth)
        try:
            yield from self._below(descriptor, "", (_identity(os.fstat(descriptor)),))
        finally:
            os.close(descriptor)

    def _below(
        self, folder: int, prefix: str, parents: tuple[tuple[int, int], ...]
    ) -> Iterator[FoundFile | SkippedEntry]:
        try:
            with os.scandir(folder) as scanned:
                for entry in sorted(scanned, key=lambda entry: entry.name) if self.ordered else scanned:
                    yield from self._one(folder, entry, prefix + entry.name, parents)
        except OSError as error:
            if not prefix:
                raise
            yield SkippedEntry(prefix.rstrip("/"), error.strerror or str(error), hides=True)

    def _one(
        self, folder: int, entry: os.DirEntry[str], name: str, parents: tuple[tuple[int, int], ...]
    ) -> Iterator[FoundFile | SkippedEntry]:
        try:
            # The target of a link that is not followed is not looked at.
            if entry.is_dir(follow_symlinks=False) or (self.follow and entry.is_symlink() and entry.is_dir()):
                yield from self._inside(folder, entry, name, parents)
            elif self.wanted(name):
                found = entry.stat(follow_symlinks=self.follow)
                if stat.S_ISREG(found.st_mode):
                    yield FoundFile(name, found)
                else:
                    yield SkippedEntry(name, kind_of(found.st_mode))
        except FileNotFoundError:
            return  # it vanished while the folder was listed, or is a link to nothing
        except OSError as error:
            yield SkippedEntry(name, error.strerror or str(error), hides=error.errno != errno.ELOOP)

    def _inside(
        self, within: int, entry: os.DirEntry[str], name: str, parents: tuple[tuple[int, int], ...]
    ) -> Iterator[FoundFile | SkippedEntry]:
        if not self.enter(name):
            return
        if len(parents) > DEEPEST:
            yield SkippedEntry(name, f"it is more than {DEEPEST} folders deep", hides=True)
            return
        self.moves(f"listing {name}")
        descriptor = open_folder(entry.name, follow=self.follow, within=within)
        try:
            here = _identity(os.fstat(descriptor))
            if here in parents:
                yield SkippedEntry(name, "a link to one of its own parents")
                return
            yield from self._below(descriptor, name + "/", (*parents, here))
        finally:
            os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
