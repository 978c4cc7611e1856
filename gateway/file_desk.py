"""The desk for files: operators have them read again."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import ConfigError, InvalidRequest
from ..wire.ports.files import FileChange


class FileControl(Protocol):
    """The files of this process. Raises ConfigError with every mistake, when nothing was changed."""

    async def reload(self) -> list[FileChange]: ...


class FileDesk:
    """A FilePort; None: a gateway that was given no files."""

    def __init__(self, files: FileControl | None) -> None:
        self._files = files

    async def reload(self, why: str = "") -> list[FileChange]:
        """Puts in force what is new in the files."""
        if self._files is None:
            raise InvalidRequest("this gateway was given no configuration directory: there is nothing to reload")
        try:
            return await self._files.reload()
        except ConfigError as error:
            raise InvalidRequest(f"nothing was changed; the files have mistakes:\n{error}") from None
