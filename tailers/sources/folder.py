"""Safe reads of the files below a folder: nothing that somebody puts there leads out of it, or makes a reader wait.

Each part of a name is opened from the folder before it (openat), so that no link stands in for any part, not even one
that was put there a moment ago. A name is looked at, opened without waiting, and looked at again: only regular files
are read, and never more bytes than were asked for.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

_COMMON = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER, _FILE = _COMMON | os.O_DIRECTORY, _COMMON | os.O_NOCTTY
#: Bytes of one read.
_BLOCK = 1 << 20
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


def open_folder(name: str | Path, *, follow: bool, within: int | None = None) -> int:
    """A descriptor of a folder. Raises OSError; NotADirectoryError or ELOOP for a link where none is followed."""
    return os.open(name, _FOLDER | (0 if follow else os.O_NOFOLLOW), dir_fd=within)


class Folder:
    """Reads files below one folder; for one thread. The folder itself may be a link, since its user named it.

    Invariant: `_open` has the folders from the root to the one that was used last, with names and descriptors.
    """

    def __init__(self, root: Path, *, follow: bool) -> None:
        self._root = root
        self._follow = follow
        self._open: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        self._open.append(("", open_folder(self._root, follow=True)))
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
        link = 0 if self._follow else os.O_NOFOLLOW
        descriptor = os.open(name.rpartition("/")[2], _FILE | link, dir_fd=self._open[-1][1])
        try:
            opened = os.fstat(descriptor)
            if not stat.S_ISREG(opened.st_mode):  # it was put there between the two looks
                raise NoFile(f"it is {kind_of(opened.st_mode)}")
            content = bytearray()
            while len(content) <= most and (piece := os.read(descriptor, min(_BLOCK, most + 1 - len(content)))):
                content += piece
        finally:
            os.close(descriptor)
        return opened, bytes(content) if len(content) <= most else None

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
