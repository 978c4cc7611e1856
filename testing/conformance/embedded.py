"""The bench of an embedded engine: one SQLite file, closed and opened again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Self, TypeVar

from ...stores.sqlite.file import SqliteFile
from ..clock import ManualClock

E = TypeVar("E")


class SqliteBench(Generic[E]):
    """An embedded engine on the bench. `make` builds the engine over an open file, `opened` opens one that needs it.
    NORMAL durability, for speed."""

    def __init__(
        self,
        folder: Path,
        schema: str,
        make: Callable[[SqliteFile, ManualClock], E],
        opened: Callable[[E], Awaitable[None]] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self._path = folder / "store.db"
        self._schema = schema
        self._make = make
        self._opened = opened
        self._file: SqliteFile | None = None
        self._engine: E | None = None

    @property
    def engine(self) -> E:
        """The engine as it is open now."""
        assert self._engine is not None
        return self._engine

    async def __aenter__(self) -> Self:
        file = self._file = SqliteFile(self._path, self._schema, name="test", synchronous="NORMAL")
        await file.open()
        self._engine = self._make(file, self.clock)
        if self._opened is not None:
            await self._opened(self._engine)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._file is not None:
            await self._file.close()

    async def reopen(self) -> None:
        """Closes the file and opens it again."""
        await self.__aexit__()
        await self.__aenter__()
