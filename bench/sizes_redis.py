"""Sizes of a queue in Redis: bytes of its memory that hold data."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from ..stores.queue.redis.options import RedisQueueOptions


@contextlib.asynccontextmanager
async def sizes(url: str) -> AsyncIterator[Callable[[], Awaitable[dict[str, float]]]]:
    """Yields the function that measures them."""
    client = RedisQueueOptions.model_validate({"url": url}).client()

    async def look() -> dict[str, float]:
        return {"keys": float((await client.info("memory"))["used_memory_dataset"])}

    try:
        yield look
    finally:
        await client.aclose()
        await client.connection_pool.disconnect()
