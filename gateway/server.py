"""The gateway as a part that runs: its desks behind one listener."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import grpc

from ..sdk.clock import SYSTEM_CLOCK, Clock
from ..sdk.lifecycle import cancel
from ..sdk.model.errors import TailraceError
from ..sdk.model.limits import Quota
from ..sdk.model.overview import Overview
from ..sdk.model.schedule import Schedule
from ..sdk.wire import gateway as wire
from ..sdk.wire.channel import serve
from ..sdk.wire.health import Health
from ..stores.control.control import Control
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.drops.drops import Drops
from ..stores.queue.queue import Queue
from ..stores.results.results import Results
from ..stores.schedules.schedules import Schedules
from ..stores.spool.spool import Spool
from .attention import Attention
from .config import GatewayConfig
from .control import ControlDesk
from .dead_letters import DeadLetterDesk
from .drops import DropsDesk
from .known_functions import KnownFunctions
from .overview import Audits, OverviewDesk, no_audits, no_parts
from .replay_desk import ReplayControl, ReplayDesk
from .schedule_desk import ScheduleDesk
from .spooling import Spooler, spool_rule
from .status import StatusDesk
from .submitter import Submitter
from .tailer_desk import TailerControl, TailerDesk

_LOG = logging.getLogger("tailrace.gateway")

#: Seconds that calls which are being answered get when the gateway is stopped.
GRACE = 0.5
#: How often a drain looks whether everything inside was stored (seconds).
DRAIN_LOOK = 0.01


class _Front:
    """Each call of the service at the desk that answers it."""

    def __init__(
        self,
        submitter: Submitter,
        desk: StatusDesk,
        control: ControlDesk,
        letters: DeadLetterDesk,
        overview: OverviewDesk,
        drops: DropsDesk,
        tailers: TailerDesk,
        replays: ReplayDesk,
        schedules: ScheduleDesk,
    ) -> None:
        self.submit = submitter.submit
        self.status = desk.status
        self.result = desk.result
        self.cancel = desk.cancel
        self.find = desk.find
        self.register_functions = control.register_functions
        self.list_functions = control.list_functions
        self.set_gate = control.set_gate
        self.set_quota = control.set_quota
        self.watch = control.watch
        self.list_dead = letters.list
        self.count_dead = letters.count
        self.redrive_dead = letters.redrive
        self.purge_dead = letters.purge
        self.list_drops = drops.list
        self.overview = overview.overview
        self.audit = overview.audit
        self.pause_tailer = tailers.pause
        self.seek_tailer = tailers.seek
        self.start_replay = replays.start
        self.list_replays = replays.list
        self.change_replay = replays.change
        self.put_schedule = schedules.put
        self.list_schedules = schedules.list
        self.change_schedule = schedules.change


class GatewayServer:
    """The front door. A Part.

    overview  tells of tailers and delay streams (the gateway counts the queue and the dead letters itself)
    audits    what became of everything that a tailer's source had
    drops     what was passed without being run; None: this gateway cannot tell
    tailers   those beside it, to be paused and moved; None: there are none
    replays   what operators do with replays; None: this gateway has no store of them
    quotas    limits to set at start (`quotas.yaml`)
    schedules what is scheduled; None: this gateway keeps none
    scheduled what `schedules.yaml` says, applied at start; None: there is no such file
    spool     takes submissions while the queue's store is away; None: they are refused then

    The stores are the caller's: open before `start`, closed after `stop`.
    """

    def __init__(
        self,
        config: GatewayConfig,
        queue: Queue,
        results: Results,
        dead_letters: DeadLetters,
        control: Control,
        overview: Callable[[], Awaitable[Overview]] = no_parts,
        clock: Clock = SYSTEM_CLOCK,
        quotas: Sequence[Quota] = (),
        audits: Audits = no_audits,
        drops: Drops | None = None,
        tailers: TailerControl | None = None,
        replays: ReplayControl | None = None,
        schedules: Schedules | None = None,
        scheduled: Sequence[Schedule] | None = None,
        spool: Spool | None = None,
    ) -> None:
        self._config = config
        self._scheduled = scheduled
        self._quotas = quotas
        functions = KnownFunctions()
        self._spooler: Spooler | None = None
        if spool is not None:
            self._spooler = Spooler(queue, spool, spool_rule(config), clock, config.store_patience)
        attention = Attention(config, clock)
        self._submitter = Submitter(config, queue, functions, clock, attention.refusals, self._spooler)
        self._status = StatusDesk(config, queue, results, clock, self._spooler)
        self._control = ControlDesk(control, functions, clock, config.watchers, spool)
        self._letters = DeadLetterDesk(config, queue, dead_letters, functions, clock)
        self._drops = DropsDesk(drops)
        self._tailers = TailerDesk(tailers)
        self._replays = ReplayDesk(replays)
        self._schedules = ScheduleDesk(config, schedules, functions, clock)
        gates = self._control.gates
        self._overview = OverviewDesk(attention, queue, dead_letters, gates, overview, audits, self._spooler)
        self._waiting: asyncio.Task[None] | None = None  # schedules.yaml, for a store that is away
        self._health = Health(wire.SERVICE)
        self._server: grpc.aio.Server | None = None
        self.address = config.listen

    async def start(self) -> None:
        """Applies the quotas and schedules, listens, answers. `address` is the actual one from then on."""
        store_read = await self._control.start(self._quotas)
        if self._spooler is not None:
            await self._spooler.start()
        if store_read:
            await self._schedules.start(self._scheduled)
        else:
            self._waiting = asyncio.create_task(self._apply_later(), name="gateway: schedules.yaml")
        self._status.start()
        self._letters.start()
        self._overview.start(self._config.look_every)
        desks = (self._status, self._control, self._letters, self._overview, self._drops, self._tailers)
        front = _Front(self._submitter, *desks, self._replays, self._schedules)
        self._server, self.address = await serve(self._config.listen, [wire.register(front), self._health.register])
        await self._health.set(True)

    async def _apply_later(self) -> None:
        try:
            await self._schedules.start(self._scheduled)
        except TailraceError as error:
            _LOG.error("schedules.yaml is not applied: %s", error)

    async def set_health(self, name: str, serving: bool) -> None:
        """Also answers health checks for a part of this process that has no server of its own."""
        await self._health.set_also(name, serving)

    async def drain(self, timeout: float) -> None:
        """Takes nothing new and answers what is inside, for at most `timeout` seconds."""
        await self._health.set(False)
        self._submitter.close()
        self._status.close()
        self._control.close()
        looks = max(1, int(timeout / DRAIN_LOOK))
        while self._submitter.inside and looks:
            looks -= 1
            await asyncio.sleep(DRAIN_LOOK)

    async def stop(self) -> None:
        """Closes the listener. Harmless twice, and after a failed start."""
        await self._health.set(False)
        self._submitter.close()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            await cancel(waiting)
        await self._overview.stop()
        await self._letters.stop()
        await self._control.stop()
        await self._status.stop()
        server, self._server = self._server, None
        if server is not None:
            await server.stop(GRACE)
        if self._spooler is not None:
            await self._spooler.stop()
