"""A queue as its engine opens it, for scenarios that measure it without the platform around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..stores.config import StoresConfig
from ..stores.queue.engines import ENGINES, OpenQueue


@asynccontextmanager
async def opened(config: StoresConfig) -> AsyncIterator[OpenQueue]:
    """The queue that this configuration names, for as long as the block lasts; it must name an engine on a server."""
    queue: OpenQueue | None = ENGINES.chosen(config.queue, config)
    assert queue is not None
    await queue.open()
    try:
        yield queue
    finally:
        await queue.close()
