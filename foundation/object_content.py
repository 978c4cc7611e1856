"""The content of one version of one object, read forward in bounded pieces, and unzipped where it is gzip."""

from __future__ import annotations

import asyncio
from typing import Protocol

from .gunzip import Gunzip, Undecodable


class ObjectReader(Protocol):
    """The one call of an object store that is needed here."""

    async def part(self, key: str, version: str, start: int, length: int) -> bytes: ...


class Content:
    """The content of an object, in pieces. Invariant: `offset` is the position in the content at which the next piece
    begins. In memory are at most one part as stored, and one piece.

    `body` is the whole object, where that was read already. Every method may raise the errors of `part`, and
    Undecodable.
    """

    def __init__(
        self,
        store: ObjectReader,
        key: str,
        version: str,
        size: int,
        *,
        gzip: bool,
        block: int,
        most_ratio: int,
        body: bytes | None = None,
    ) -> None:
        self.key = key
        self.version = version
        self.offset = 0
        self._store = store
        self._size = size
        self._stored = 0  # bytes of the object that were read
        self._block = block
        self._body = body
        self._gunzip = Gunzip(most_ratio) if gzip else None

    async def seek(self, offset: int) -> None:
        """Goes forward to an offset. In gzip that means reading everything before it."""
        if self._gunzip is None:
            self.offset = self._stored = offset
            return
        while self.offset < offset:
            if not await self.piece(offset - self.offset):
                raise Undecodable(f"its content ends at {self.offset}, before {offset}")

    async def piece(self, most: int = 0) -> bytes:
        """Reads the next piece, at most `most` bytes (and at most a block); empty at the end."""
        most = min(most or self._block, self._block)
        if self._gunzip is None:
            found = await self._next(most)
        else:
            found = b""
            while not found:
                if self._gunzip.wants:
                    data = await self._next(self._block)
                    if not data:
                        self._gunzip.finish()
                        break
                    self._gunzip.feed(data)
                found = await asyncio.to_thread(self._gunzip.pull, most)
        self.offset += len(found)
        return found

    async def up_to(self, length: int) -> bytes:
        """Reads the next `length` bytes; fewer at the end."""
        pieces = []
        while length > 0 and (piece := await self.piece(length)):
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    async def _next(self, most: int) -> bytes:
        start, end = self._stored, min(self._size, self._stored + most)
        if start >= end:
            return b""
        found = self._body[start:end] if self._body is not None else None
        if found is None:
            found = await self._store.part(self.key, self.version, start, end - start)
        self._stored += len(found)
        return found
