"""The port for the files of a configuration directory: read again without a restart."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class FileChange(NamedTuple):
    """A changed file, or a tailer of it: the change, and its effect."""

    file: str
    change: str
    effect: str


class FilePort(Protocol):
    """The files of the process that a gateway is in."""

    async def reload(self, why: str = "") -> list[FileChange]:
        """Reads all files again and applies their changes, as far as that needs no restart. Raises InvalidRequest with
        every mistake in them; nothing is changed then."""
