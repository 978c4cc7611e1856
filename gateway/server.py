"""The gateway as a part that runs: its desks behind one listener."""

from __future__ import annotations

import asyncio
from functools import partial

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import each_of
from ..model.metrics import Sample
from ..wire import gateway as wire
from ..wire import operators
from ..wire.callers import TokenDoor
from ..wire.carriers import serve_streams
from ..wire.channel import check_listen, serve
from ..wire.health import Health
from ..wire.stream import Listener
from ..wire.submissions import SUBMISSIONS
from .act_recording import RecordedOperations, RecordedSchedules, RecordedWorkloads
from .authorization import GuardedFunctions, GuardedSchedules, GuardedWorkloads
from .config import GatewayConfig
from .environment import ALONE, NOTHING_DECLARED, DeclaredFiles, GatewayStores, Neighbours
from .service import GatewayService

#: Seconds that open calls get to end when the gateway is stopped.
GRACE = 0.5
#: Seconds between two looks of a drain whether everything inside was stored.
DRAIN_LOOK = 0.01


class GatewayServer:
    """The gateway as a Part, over `stores`, `beside` parts of its process, with quotas and schedules of files."""

    def __init__(
        self,
        config: GatewayConfig,
        stores: GatewayStores,
        beside: Neighbours = ALONE,
        declared: DeclaredFiles = NOTHING_DECLARED,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._config = config
        self._declared = declared
        self.duties = Duties("gateway")
        self._make = partial(GatewayService, config, stores, beside, clock, self.duties)
        self._desks = self._make()
        self._started = False
        self._health = Health(wire.SERVICE)
        self._servers: list[Listener] = []
        self.address = config.listen
        self.token_address = config.token_listen

    async def start(self) -> None:
        """Applies the quotas and schedules, listens, answers. `address` is the actual one from then on."""
        check_listen(self._config.listen)
        if self._started:  # it is opened again, at the address that others know
            self._desks = self._make()
        self._started = True
        await self._desks.start(self._declared)
        desks = self._desks
        parts = [
            wire.register(
                GuardedWorkloads(RecordedWorkloads(desks, desks.acts)),
                GuardedFunctions(desks.functions),
                GuardedSchedules(RecordedSchedules(desks.schedules, desks.acts)),
            ),
            operators.register(desks.for_operators, RecordedOperations(desks.acts).through),
            self._health.register,
        ]
        peers, endings = self._config.peers, self._desks.endings
        door = TokenDoor(self.token_address, desks.tokens) if self.token_address else None
        server, self.address = await serve(
            self.address, parts, peers, endings, door, chosen_by="`listen` in gateway.yaml"
        )
        self.token_address = "" if door is None else door.address
        self._servers.append(server)
        if self._desks.direct:
            direct, _ = await serve_streams(self._desks.direct, {SUBMISSIONS: self._desks.submissions}, peers, endings)
            self._servers.append(direct)
        await self._health.set(True)

    async def declare(self, before: DeclaredFiles, now: DeclaredFiles) -> None:
        """Applies changed files, now and whenever the gateway is opened again. Raises the store's own errors."""
        await self._desks.declare(before, now)
        self._declared = now

    async def samples(self) -> list[Sample]:
        """The metrics of the platform, as this gateway knows them. Raises Unavailable while a store is away."""
        return await self._desks.samples()

    async def set_health(self, name: str, serving: bool) -> None:
        """Sets the health of a part of this process that has no server of its own, such as a tailer."""
        await self._health.set_also(name, serving)

    async def drain(self, timeout: float) -> None:
        """Refuses new submissions, and waits until those inside are stored, for at most `timeout` seconds."""
        await self._health.set(False)
        self._desks.close()
        looks = max(1, int(timeout / DRAIN_LOOK))
        while self._desks.inside and looks:
            looks -= 1
            await asyncio.sleep(DRAIN_LOOK)

    async def stop(self) -> None:
        """Closes the listener. Harmless twice, and after a failed start."""
        await each_of(
            [
                lambda: self._health.set(False),
                self._desks.stop,
                self._stop_serving,
                self._desks.stop_spooling,
                self.duties.end,
            ]
        )

    async def _stop_serving(self) -> None:
        servers, self._servers = self._servers, []
        await asyncio.gather(*(server.stop(GRACE) for server in servers))
