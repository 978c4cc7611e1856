"""The port for the files of a configuration directory: read again without a restart."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class FileChange(NamedTuple):
    """A file that is another than before, or a tailer of one: what is new, and what came of it."""

    file: str
    change: str
    effect: str


class FilePort(Protocol):
    """The files of the process that a gateway is in."""

    async def reload(self, why: str = "") -> list[FileChange]:
        """Reads all files and puts in force what is new in them, as far as that needs no restart. Raises InvalidRequest
        with every mistake, when nothing was changed."""
