"""Checkpoints of the platform, as a client of our own hears of them from the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from ...stores.remote import RemoteCheckpoints
from ...tailers.rules.sparse_frontier import settled_ahead
from .looks import Ask
from .passed import Done


@asynccontextmanager
async def checkpoints(store: str, tailers: Sequence[str]) -> AsyncIterator[Ask[Done]]:
    """Asks the store at an address, for sources whose positions are far apart."""
    client = RemoteCheckpoints(store)

    async def ask() -> Mapping[str, Done]:
        return {
            f"{tailer}/{partition}": Done(mark.position, settled_ahead(mark.position, mark.ahead))
            for tailer in tailers
            for partition, mark in (await client.load(tailer)).items()
        }

    try:
        yield ask
    finally:
        await client.close()
