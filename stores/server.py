"""The store server: serves the stores of this process to other processes, each by its name and protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from ..wire.bounds import USUAL, PeerBounds
from ..wire.channel import serve
from ..wire.health import Health
from ..wire.stores import SERVICE, StoresService
from .checkpoints.checkpoints import Checkpoints
from .control.control import Control
from .dead_letters.dead_letters import DeadLetters
from .drops.drops import Drops
from .heights import Heights
from .inventory.inventory import Inventory
from .jobs.jobs import Jobs
from .ledger.ledger import Ledger
from .log.log import Log
from .ownership.ownership import Ownership
from .queue.queue import Queue
from .replays.replays import Replays
from .results.results import Results
from .schedules.schedules import Schedules
from .segments.segments import Segments
from .troubles import Troubles
from .usage.usage import Usage

PROTOCOLS: dict[str, type[Any]] = {
    "queue": Queue,
    "jobs": Jobs,
    "log": Log,
    "delay_log": Log,
    "delay_queue": Queue,
    "checkpoints": Checkpoints,
    "dead_letters": DeadLetters,
    "drops": Drops,
    "results": Results,
    "control": Control,
    "heights": Heights,
    "inventory": Inventory,
    "ownership": Ownership,
    "ledger": Ledger,
    "segments": Segments,
    "replays": Replays,
    "schedules": Schedules,
    "troubles": Troubles,
    "usage": Usage,
}


class StoreServer:
    """A part that serves stores over gRPC. `engines` are stores by the names in PROTOCOLS; the owner opens them
    before `start` and closes them after `stop`. Raises the errors of `channel.serve`."""

    def __init__(self, listen: str, engines: Mapping[str, object], peers: PeerBounds = USUAL) -> None:
        self._listen = listen
        self._peers = peers
        self._service = StoresService({name: (PROTOCOLS[name], engine) for name, engine in engines.items()})
        self._health = Health(SERVICE)
        self._server: grpc.aio.Server | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """The address (host:port) on which it listens, once started."""
        return self._address

    async def start(self) -> None:
        self._server, self._address = await serve(
            self._listen,
            [self._service.register, self._health.register],
            self._peers,
            chosen_by="`listen` in stores.yaml",
        )
        await self._health.set(True)

    async def drain(self, timeout: float) -> None:
        """Answers the calls under way; calls that wait for something to happen are ended."""
        if self._server is not None:
            await self._health.set(False)
            self._service.end_waits()
            await self._server.stop(timeout)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            self._service.end_waits()
            await server.stop(None)
