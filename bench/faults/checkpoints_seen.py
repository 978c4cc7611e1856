"""Checkpoints of the platform, as a client of our own reads them from the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ...stores.remote import RemoteCheckpoints
from ...tailers.rules.sparse_frontier import settled_ahead
from .known_too_soon import JournaledProgress
from .looks import Ask


@asynccontextmanager
async def checkpoints(store: str, tailers: Sequence[str]) -> AsyncIterator[Ask[JournaledProgress]]:
    """Connects to the store at an address and asks for sources whose positions are far apart."""
    client = RemoteCheckpoints(store)

    async def ask() -> Sequence[tuple[str, JournaledProgress]]:
        return [
            (f"{tailer}/{partition}", JournaledProgress(mark.position, settled_ahead(mark.position, mark.ahead)))
            for tailer in tailers
            for partition, mark in (await client.load(tailer)).items()
        ]

    try:
        yield ask
    finally:
        await client.close()
