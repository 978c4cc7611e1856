"""A local folder as a store of objects: each regular file below it is one, whatever its name.

The client library of the stores hides some names of a folder, cannot name others, and lets a listing fail on a loop of
links; so a folder is read by calls of the system, in a thread of its own, since its file system may hang.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Generator
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from ..model.errors import NotConnected
from .folder import Folder, FoundFile, SkippedEntry, Walk, birth_at
from .logger import Logger
from .own_thread import OwnThread

log = Logger("tailrace.objects")
T = TypeVar("T")
#: Bytes of a name that are no text, as a key has them.
_NO_TEXT = re.compile(rb"\\x([89a-f][0-9a-f])")
#: Most names of skipped entries that are kept, so that each is told once.
_MOST_TOLD = 1000


class LocalObjects:
    """The files below one folder. Links are followed. Every method may raise NotConnected when the folder is away or
    hangs; those about one file also NoFile and OSError."""

    def __init__(self, url: str, patience: float) -> None:
        self._url = url
        self._root = Path(unquote(urlsplit(url).path))
        self._thread = OwnThread(f"objects-{self._root.name}"[:60], patience)
        self._told: set[str] = set()
        self._birth = ""  # no other folder will do

    async def birth(self) -> str:
        """The birth of the folder; empty where it is not known."""
        return await self._call(self._birth_now)

    def hold_to(self, birth: str) -> None:
        """Refuses folders with another birth from now on."""
        self._birth = birth

    async def pages(self, size: int) -> AsyncIterator[list[tuple[str, os.stat_result]]]:
        """Yields all keys with their files' facts, in pages, in no order. What is no file is told in the log."""
        walk = Walk(follow=True, moves=self._thread.moves, birth=self._birth, ordered=False).files(self._root)
        try:
            while page := await self._call(self._page, walk, size):
                yield [(key_of(found.name), found.facts) for found in page if isinstance(found, FoundFile)]
                for found in page:
                    if isinstance(found, SkippedEntry):
                        self._tell(found)
        finally:
            await self._call(walk.close)

    async def facts(self, key: str) -> os.stat_result:
        """The facts about a file."""
        return await self._call(self._in_folder, key, lambda folder, name: folder.facts(name))

    async def read(self, key: str, most: int) -> tuple[os.stat_result, bytes | None]:
        """A file as it is now; None instead of content that is longer than `most` bytes."""
        return await self._call(self._in_folder, key, lambda folder, name: folder.read(name, most))

    async def part(self, key: str, start: int, length: int) -> tuple[os.stat_result, bytes]:
        """The facts about a file, and its bytes from `start` on; fewer at its end."""
        return await self._call(self._in_folder, key, lambda folder, name: folder.part(name, start, length))

    async def _call(self, fn: Callable[..., T], *arguments: object) -> T:
        return await self._thread.call(fn, *arguments)

    def _birth_now(self) -> str:
        try:
            return birth_at(self._root)
        except OSError as error:
            raise self._away(error) from error

    def _page(self, walk: Generator[FoundFile | SkippedEntry], size: int) -> list[FoundFile | SkippedEntry]:
        try:
            return list(islice(walk, size))
        except OSError as error:
            raise self._away(error) from error

    def _in_folder(self, key: str, ask: Callable[[Folder, str], T]) -> T:
        self._thread.moves(f"reading {key}")
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(Folder(self._root, follow=True, birth=self._birth))
            except OSError as error:  # not the file is gone, but all of them are out of reach
                raise self._away(error) from error
            try:
                return ask(folder, key)
            except FileNotFoundError:
                if (name := name_of(key)) == key:
                    raise
                return ask(folder, name)

    def _away(self, error: OSError) -> NotConnected:
        return NotConnected(f"{self._url} cannot be read: {error.strerror or error}")

    def _tell(self, skipped: SkippedEntry) -> None:
        """Tells in the log what is no file. Raises NotConnected for what may hide files."""
        if skipped.hides:
            raise NotConnected(
                f"{self._url}: {key_of(skipped.name)} cannot be listed: {skipped.why}. Make it readable, or narrow "
                "the url"
            )
        if skipped.name not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(skipped.name)
            log.warning("not listed", folder=str(self._root), name=key_of(skipped.name), why=skipped.why)


def key_of(name: str) -> str:
    """The key of a file's name: the name, in which bytes that are no text stand as `\\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def name_of(key: str) -> str:
    """The file's name that a key may stand for, if there is no file that is called as the key is."""
    return os.fsdecode(_NO_TEXT.sub(lambda found: bytes([int(found[1], 16)]), key.encode()))


def etag_of(found: os.stat_result) -> str:
    """The etag of a file, as the client library has it: so what was read before is still the same version."""
    return f"{found.st_ino:x}-{found.st_mtime_ns // 1000:x}-{found.st_size:x}"
