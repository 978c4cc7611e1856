"""A server as a part of the world: killed with all its processes, started again on the same data."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from ...model.errors import ConfigError
from ..process import descendants
from .world import Restarted


class OwnServer(Protocol):
    """A server of our own."""

    @property
    def running(self) -> bool: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def kill(self) -> None: ...


class ServerPart(Restarted):
    """A server that is started again whenever it ends."""

    def __init__(self, name: str, node: OwnServer) -> None:
        super().__init__(name, None, {}, None)
        self.node = node

    @property
    def pid(self) -> int:
        return self.node.pid if self.node.running else 0

    @property
    def processes(self) -> list[int]:
        return descendants(self.pid) if self.pid else []

    async def _keep(self) -> None:
        while True:
            if not self.node.running:
                self.node.start()
            with contextlib.suppress(OSError, ConfigError):
                await asyncio.to_thread(self.node.wait)
                self.ready.set()
            while self.node.running:
                await asyncio.sleep(0.02)
            if self.ready.is_set():  # else it did not start, and is tried again
                self.ready.clear()
                self.deaths += 1
            await asyncio.sleep(0.1)

    async def end(self, grace: float) -> None:
        await super().end(grace)
        await asyncio.to_thread(self.node.kill)  # its data is the run's own, and goes with it
