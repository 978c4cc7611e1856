"""The content of a workload, in pieces, as `Context.open()` gives it: its payload, or the object it refers to.

A worker opens places that its own file names, and nothing else: a payload says which object, never with which secret or
at which address.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..foundation.gunzip import Undecodable
from ..foundation.object_content import Content
from ..model.errors import ConfigError, Fatal, InvalidRequest
from ..model.reference import REFERENCE, Reference, decode
from ..model.workload import Headers

if TYPE_CHECKING:
    from ..foundation.object_places import Place

#: Bytes read at once.
BLOCK = 1 << 20
#: Most bytes of content for each byte of its gzip.
MOST_RATIO = 200


class Places:
    """The places that a worker may open, each connected once."""

    def __init__(self, places: Sequence[Place] = ()) -> None:
        self._places = places
        self._stores: dict[str, Any] = {}

    @classmethod
    def revealed(cls, texts: Sequence[str]) -> Places:
        """Makes places of the texts that `Place.reveal` wrote. Nearly all workers have none, and then do not import the
        class: that takes half as long as the rest of an executor's start."""
        if not texts:
            return cls()
        from ..foundation.object_places import Place

        return cls([Place.model_validate_json(text) for text in texts])

    def store(self, url: str) -> Any:
        """The store of the place at a URL. Raises ConfigError when the worker's file names no such place."""
        if url not in self._stores:
            from ..foundation.object_places import place_for

            place = place_for(url, self._places)
            if place is None:
                raise ConfigError(
                    f"the content lies at {url}, which this worker may not open: add it to its file, worker.yaml, as "
                    f"\"objects: [{{url: '{url}'}}]\", with the endpoint, region and credentials that its tailer's "
                    "file has"
                )
            try:
                from ..foundation.objects import ObjectStore
            except ModuleNotFoundError as error:
                raise ConfigError(
                    f'opening {url} needs the Python package "{error.name}", which is not installed: '
                    "pip install 'tailrace[objects]'"
                ) from None
            self._stores[url] = ObjectStore(place)
        return self._stores[url]


class Opened:
    """Iterates over the content's pieces, at most a megabyte each: `async for` in an `async def` function, `for` in a
    `def` one. An object that is gone, was replaced, or is not the gzip it says it is raises Fatal; a store that is
    away NotConnected, so that the workload is tried again."""

    def __init__(self, payload: bytes, headers: Headers, places: Places) -> None:
        self._payload = payload
        self._headers = headers
        self._places = places

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if REFERENCE not in self._headers:
            for start in range(0, len(self._payload), BLOCK):
                yield self._payload[start : start + BLOCK]
            return
        from ..foundation.objects import Gone, Replaced

        reference = decode(self._payload)
        store = self._places.store(reference.url)
        try:
            content = await self._content(store, reference)
            left = reference.length if reference.length >= 0 else 1 << 62
            while left > 0 and (piece := await content.piece(min(left, BLOCK))):
                left -= len(piece)
                yield piece
        except (Gone, Replaced, Undecodable) as error:
            raise Fatal(f"{reference.key}: {error}") from None

    def __iter__(self) -> Iterator[bytes]:
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            raise InvalidRequest("ctx.open() in an `async def` function: write `async for piece in ctx.open()`")
        pieces = aiter(self)
        with asyncio.Runner() as runner:

            async def following() -> bytes:
                return await anext(pieces, b"")

            while piece := runner.run(following()):
                yield piece

    async def _content(self, store: Any, reference: Reference) -> Content:
        facts = await store.facts(reference.key, reference.version)
        content = Content(
            store,
            reference.key,
            facts.version,
            facts.size,
            gzip=reference.gzip,
            block=BLOCK,
            most_ratio=MOST_RATIO,
        )
        await content.seek(reference.offset)
        return content
