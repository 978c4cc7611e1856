"""The platform with its queue on a server, which is killed hard and started again on the same data as the parts are."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..queue_engines import NODES
from .plan import SERVER
from .server_part import ServerPart
from .world import FaultWorld


class ServerWorld(FaultWorld):
    """A world whose queue is on a server. `engine`: an engine on a server, with its usual durability."""

    def __init__(self, folder: Path, heartbeat: float, engine: str) -> None:
        super().__init__(folder, heartbeat)
        self._engine = engine
        self._node = NODES[engine](folder / engine)

    async def start(self) -> None:
        server = ServerPart(SERVER, self._node)
        await server.start()
        await super().start()
        self.parts[SERVER] = server

    def _configured(self) -> Path:
        config = super()._configured()
        (config / "stores.yaml").write_text(f'queue: {{engine: {self._engine}, url: "{self._node.url}"}}\n')
        return config

    async def stop(self) -> None:
        try:
            await super().stop()
        finally:
            if SERVER in self.parts:
                await self.parts[SERVER].end(0)
            else:
                await asyncio.to_thread(self._node.kill)
