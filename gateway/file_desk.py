"""The desk for the configuration files of the process: operators have them read again."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import ConfigError, InvalidRequest
from ..wire.ports.files import FileChange


class FileControl(Protocol):
    """The files of this process. `reload` raises ConfigError with every mistake; nothing is changed then."""

    async def reload(self) -> list[FileChange]: ...


class FileDesk:
    """Answers calls about files (a FilePort). `files` None: the gateway has no configuration directory."""

    def __init__(self, files: FileControl | None) -> None:
        self._files = files

    async def reload(self, why: str = "") -> list[FileChange]:
        """Applies changes in the files."""
        if self._files is None:
            raise InvalidRequest("this gateway has no configuration directory to reload: start it with one")
        try:
            return await self._files.reload()
        except ConfigError as error:
            raise InvalidRequest(f"nothing was changed; the files have mistakes:\n{error}") from None
