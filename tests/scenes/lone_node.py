"""A node without a scheduler, and waits for answers of its public face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tailrace.assembly.node import Node
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.errors import Unavailable


@asynccontextmanager
async def node(folder: Path, config: Path | None = None, *, watch: bool = False) -> AsyncIterator[Node]:
    """Runs a node whose data are in the folder, and ends it in order."""
    listen = dict.fromkeys(("gateway", "store", "delay"), "127.0.0.1:0")
    running = Node(folder / "data", ConfigDirectory(config), scheduler="127.0.0.1:1", listen=listen, watch=watch)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


async def until(true: Callable[[], Awaitable[Any]], within: float = 30.0) -> Any:
    """Asks until the answer is true, and returns it; asks again while the node is away."""
    async with asyncio.timeout(within):
        while True:
            try:
                if found := await true():
                    return found
            except Unavailable:
                pass
            await asyncio.sleep(0.01)
