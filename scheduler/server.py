"""The scheduler's process: the only file that awaits. It moves frames between the sessions and the core, and lets time
pass for it; every decision is the core's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..model.errors import InvalidRequest, Overloaded, TailraceError
from ..model.lease import LeaseSizes
from ..model.metrics import Sample, sorted_samples
from ..model.name import check_not_reserved
from ..model.rights import Need
from ..model.usage import UsageReport
from ..model.workload import Kind
from ..wire.callers import CALLER, RIGHTS, require
from ..wire.carriers import serve_streams
from ..wire.channel import serve
from ..wire.convert import function_from_wire
from ..wire.direct import SCHEME
from ..wire.health import Health
from ..wire.link import Link
from ..wire.scheduler import SERVICE, serve_scheduler, sessions
from ..wire.session import Served
from ..wire.stream import Listener, Stream
from ..wire.v1 import scheduler_pb2 as pb
from .calls import Calls
from .config import AUTO, SchedulerConfig
from .core import Core
from .endpoints import TailerEnd, WorkerEnd, adoption_to_wire, read_carried
from .metrics import samples
from .recorder import FRAME, MOST_RECORDERS, Recorder
from .sessions import Adoption
from .start_delays import StartDelays
from .tracing import tracing
from .view import explain, explain_kind, inspect

#: Started with a callback that takes snapshots (.version, .gates, .quotas, .functions); runs until cancelled.
Watch = Callable[[Callable[[Any], None]], Awaitable[None]]

#: Said to whoever asks for a scheduler that this one has followed.
ANOTHER_PROCESS = "another scheduler process listens here now"
#: Seconds: the shortest pause before waking for a token, and the pause before a watch that ended is started again.
LEAST_PAUSE = 0.002
WATCH_PAUSE = 1.0

_LOG = logging.getLogger("tailrace.scheduler")


class SchedulerServer:
    """A Part. With a `watch` it admits nothing until the first snapshot; without one it has no gates and no quotas."""

    def __init__(
        self,
        config: SchedulerConfig,
        sizes: LeaseSizes,
        watch: Watch | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.id = uuid.uuid4().hex  # with its address behind it once it listens
        self.address = ""
        self.direct_address = ""  # where sessions go without gRPC; empty: nowhere
        self.core = Core(config, sizes, ready=watch is None)
        self._config = config
        self._sizes = sizes
        self._watch = watch
        self._clock = clock
        self._tracing = tracing()
        self.delays = StartDelays()
        self._health = Health(SERVICE)
        self._servers: list[Listener] = []
        self._sessions: dict[str, Served] = {}
        self._calls = Calls(self.core, clock, self._soon)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._soon_set = False
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = 0.0
        self._tick_at = 0.0
        self._beat_at = self._began = 0.0
        self._drained = asyncio.Event()
        self.duties = Duties("scheduler")

    # ---- lifecycle

    async def start(self) -> None:
        """Listens. Ready when it has its limits: at once without a watch, else with the first snapshot."""
        self._loop, peers = asyncio.get_running_loop(), self._config.peers
        self._began = self._clock.monotonic()
        services = [serve_scheduler(self), self._health.register]
        by = "in scheduler.yaml"
        server, self.address = await serve(self._config.listen, services, peers, chosen_by=f"`listen` {by}")
        self._servers.append(server)
        self.id = f"{self.id}@{self.address}"
        if self._config.direct_listen not in ("", AUTO):
            address = f"{SCHEME}{self._config.direct_listen}"
            direct, self.direct_address = await serve_streams(
                address, sessions(self), peers, chosen_by=f"`direct_listen` {by}"
            )
            self._servers.append(direct)
        self._beat_at = self._began + self._sizes.heartbeat
        if self._watch is not None:
            self.duties.begin(self._follow(self._watch), "scheduler-watch")
        else:
            await self._health.set(True)
        self._soon()

    @property
    def listening(self) -> dict[str, str]:
        """The addresses it listens on, as its configuration would say them: with these its successor is found at the
        same place."""
        told = {"listen": self.address, "direct_listen": self.direct_address.removeprefix(SCHEME)}
        return {name: address for name, address in told.items() if address}

    async def drain(self, timeout: float) -> None:
        """Hands back waiting items and lets running ones finish, until all outcomes are told or the time is over."""
        await self._health.set(False)
        self.core.drain(self._clock.monotonic())
        self.core.heartbeat()  # its answers acknowledge what was said
        self._soon()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._drained.wait()

    async def stop(self) -> None:
        """Ends now; sessions that are open are broken off and may resume with nobody."""
        await self.duties.end()
        while self._servers:
            await self._servers.pop().stop(None)
        if self._timer is not None:
            self._timer.cancel()
        self._loop = None

    # ---- what callers ask (wire/scheduler.SchedulerCalls)

    async def execute(self, request: pb.ExecuteRequest) -> pb.ExecuteReply:
        require([Need("submit", request.function, request.collection, request.tenant)])
        return await self._calls.run(request)

    async def adopt(self, request: pb.AdoptRequest) -> pb.Adoption:
        row, now = request.row, self._clock.monotonic()
        key = (row.source, row.partition)
        if request.scheduler != self.id:
            return adoption_to_wire(Adoption(key, row.version, ANOTHER_PROCESS), now)
        answer = self.core.adoptions.set_aside(
            key, row.epoch, row.version, now + self._sizes.scheduler, self._clock.wall()
        )
        self._soon()
        return adoption_to_wire(answer, now)

    async def inspect(self) -> pb.InspectReply:
        return inspect(self.core, self.id, self._clock.monotonic(), self._clock.wall())

    async def samples(self) -> list[Sample]:
        """The scheduler's numbers now."""
        self.look_at_usage()
        return sorted_samples([*samples(await self.inspect()), *self.delays.samples(), *self.core.usage.samples()])

    def look_at_usage(self) -> None:
        """Adds the use until now to the next report."""
        self.core.usage.cut(self._clock.monotonic(), self._clock.wall())

    def usage_report(self) -> UsageReport | None:
        """The next report of usage, the same until it is accepted; None: nothing was used."""
        return self.core.usage.report(self.id)

    async def record(self, request: pb.RecordRequest) -> AsyncGenerator[pb.RecordReply, None]:
        """Yields a frame once a second, while somebody reads; frames that are not read in time are counted, and left
        out."""
        recorders = self.core.returns.recorders
        if len(recorders) >= MOST_RECORDERS:
            raise Overloaded(
                f"this scheduler has {len(recorders)} recordings under way, its bound: wait until one is over"
            )
        recorder = Recorder(self.id, self._clock.monotonic(), self._clock.wall(), request.salt)
        recorders.append(recorder)
        try:
            yield pb.RecordReply(lines=[recorder.header])
            while True:
                await asyncio.sleep(FRAME)
                yield pb.RecordReply(lines=[recorder.frame(self.core.workers.values(), self._clock.monotonic())])
        finally:
            recorders.remove(recorder)

    async def explain(self, request: pb.ExplainRequest) -> pb.ExplainReply:
        now, wall = self._clock.monotonic(), self._clock.wall()
        if request.id:
            return explain(self.core, request.id, now, wall)
        kind = Kind(request.function, request.priority, request.collection, request.tenant)
        return explain_kind(self.core, kind, request.source, now, wall)

    async def attach_tailer(self, connection: Stream) -> None:
        first = await self._hello(connection)
        hello = first.hello
        served = self._known(hello, TailerEnd)
        welcome = self._welcome(hello, served)
        if served is None:
            now = self._clock.monotonic()
            tailer = self.core.attach_tailer(hello.session, hello.name, now, through_outages=hello.through_outages)
            link, clock = Link(), self._clock
            end = TailerEnd(self.core, tailer, link, clock, self._soon, self.delays, self._tracing, RIGHTS.get())
            served = self._sessions[hello.session] = Served(end, CALLER.get(), link)
        await self._serve(served, connection, first, pb.TailerReply(welcome=welcome), pb.TailerReply)

    async def attach_worker(self, connection: Stream) -> None:
        first = await self._hello(connection)
        hello = first.hello
        try:
            specs = [function_from_wire(function) for function in hello.functions]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(f"worker {hello.name!r} announced a function that cannot be read: {error}") from None
        served_there = {name for pool in hello.pools for name in pool.functions}
        for name in (names := sorted({spec.name for spec in specs} | served_there)):
            check_not_reserved(f"worker {hello.name!r}: function", name)
        require(Need("run", name) for name in names)
        served = self._known(hello, WorkerEnd)
        welcome = self._welcome(hello, served)
        if served is None:
            worker = self.core.attach_worker(hello.session, hello.name, now := self._clock.monotonic())
            self.core.limits.carry(worker, read_carried(hello.carried), now)
            served = self._sessions[hello.session] = Served(
                WorkerEnd(self.core, worker, self._clock, self._soon, self.delays, self._tracing), CALLER.get()
            )
        assert isinstance(served.endpoint, WorkerEnd)
        served.endpoint.announce(hello, specs)
        await self._serve(served, connection, first, pb.WorkerReply(welcome=welcome), pb.WorkerReply)

    async def _hello(self, connection: Stream) -> Any:
        first = await connection.receive()
        if first is None or not first.HasField("hello") or not first.hello.session:
            raise InvalidRequest("the first frame of a connection must be a hello that names its session")
        return first

    def _known(self, hello: pb.Hello, end: type[TailerEnd] | type[WorkerEnd]) -> Served | None:
        """The session that a hello resumes; one that starts anew under a known name replaces the old one. One that is
        not known any more begins under the name that this hello gives it for that."""
        served = self._sessions.get(hello.session)
        if served is not None and served.caller != (caller := CALLER.get()):
            raise InvalidRequest(
                f"session {hello.session} was begun by {served.caller or 'this machine'}, not by {caller or 'it'}: a "
                "session goes on under the same role and name only"
            )
        if served is not None and hello.resume and isinstance(served.endpoint, end):
            return served
        if hello.resume:  # from before a restart of this process, if that was just now
            self.core.limits.rejoining_until = self._began + self._config.rejoin
        if served is None and hello.resume and hello.anew:
            hello.session = hello.anew
            return self._known(pb.Hello(session=hello.anew), end)
        if served is not None:
            self._forget(hello.session, served)
        elif len(self._sessions) >= self._config.sessions:
            raise Overloaded(
                f"this scheduler has {len(self._sessions)} sessions, its bound (`sessions`): try again later"
            )
        return None

    def _welcome(self, hello: pb.Hello, served: Served | None) -> pb.Welcome:
        return pb.Welcome(
            scheduler=self.id,
            resumed=served is not None,
            heartbeat=self._sizes.heartbeat,
            leases=[pb.LeaseSize(name=name, size=size) for name, size in self._sizes.by_name.items()],
            session=hello.session,
            # Goes with 0.3.0: tailers of 0.1 push and ask otherwise where a scheduler does not say these.
            reads_parts=True,
            remembers=True,
        )

    async def _serve(
        self, served: Served, connection: Stream, first: Any, welcome: Any, empty: Callable[[], Any]
    ) -> None:
        """Serves one connection. A session that said something that cannot be right is ended: it would say it again."""
        silence = 2 * self._sizes.heartbeat + self._sizes.round_trip
        try:
            await served.serve(connection, first, welcome, empty=empty, silence=silence, clock=self._clock)
        except TailraceError:
            self._forget(first.hello.session, served)
            raise
        except (KeyError, ValueError) as error:
            self._forget(first.hello.session, served)
            raise InvalidRequest(f"session {first.hello.session} sent a frame that cannot be read: {error!r}") from None

    def _forget(self, session: str, served: Served) -> None:
        if self._sessions.get(session) is served:
            del self._sessions[session]
        end, now = served.endpoint, self._clock.monotonic()
        if isinstance(end, TailerEnd):
            self.core.forget_tailer(end.tailer, now)
        elif isinstance(end, WorkerEnd):
            self.core.break_worker(end.worker, now)
        self._soon()

    # ---- turns and time

    def _soon(self) -> None:
        """Schedules `_turn`, once, after the events of this loop turn."""
        if not self._soon_set and self._loop is not None:
            self._soon_set = True
            self._loop.call_soon(self._turn)

    def _woken(self) -> None:
        # uvloop counts whole milliseconds and calls a little early: its time has not come, and no timer is left.
        self._timer = None
        self._turn()

    def _turn(self) -> None:
        try:
            self._turned()
        except Exception as error:  # there is no other turn, and half of this one was made
            self.duties.failed("a turn", error)

    def _turned(self) -> None:
        self._soon_set = False
        if self._loop is None:
            return
        core = self.core
        now, wall = self._clock.monotonic(), self._clock.wall()
        if now >= self._tick_at:
            if now >= self._beat_at:
                self._beat_at = now + self._sizes.heartbeat
                core.heartbeat()
            core.tick(now, wall)
            # Items of a lost worker start elsewhere at once when its leases are over, not up to a quarter later.
            lost = (worker.lost_at(self._sizes) for worker in core.workers.values())
            self._tick_at = min([now + self._sizes.heartbeat / 4, *lost])
            self._clear()
        core.turn(now, wall)
        self._notify()
        next_at = core.next_at
        self._arm(self._tick_at if next_at is None else min(self._tick_at, max(next_at, now + LEAST_PAUSE)), now)
        if core.draining and not core.running and self._said():
            self._drained.set()

    def _notify(self) -> None:
        speaking = self.core.speaking
        while speaking:
            session = speaking.pop()
            served = self._sessions.get(session.session)
            if served is not None:
                served.notify()
            elif session is self._calls.session:
                self._calls.deliver()

    def _arm(self, at: float, now: float) -> None:
        """Sets the one timer for everything; it is moved only when something comes sooner."""
        assert self._loop is not None
        if self._timer is not None:
            if now < self._wake_at <= at:
                return
            self._timer.cancel()
        self._wake_at = at
        self._timer = self._loop.call_later(max(0.0, at - now), self._woken)

    def _clear(self) -> None:
        """Forgets the connections of sessions that the core has given up."""
        core = self.core
        for name, served in list(self._sessions.items()):
            end = served.endpoint
            kept = core.tailers.get(name) if isinstance(end, TailerEnd) else core.workers.get(name)
            if kept is None:
                del self._sessions[name]

    def _said(self) -> bool:
        """Whether every tailer that is connected has acknowledged every outcome. Nothing else need be known: credit,
        grants and their renewals go on meanwhile, so that something of those is always on its way."""
        return not any(
            served.endpoint.has_outcomes
            or any(
                isinstance(frame, pb.TailerReply) and frame.HasField("outcomes")
                for frame in served.link.unacknowledged()
            )
            for served in self._sessions.values()
            if served.connection is not None and isinstance(served.endpoint, TailerEnd)
        )

    # ---- control

    async def _follow(self, watch: Watch) -> None:
        """Applies snapshots as they come. The last one stays in force while the control store cannot be asked."""
        while True:
            try:
                await watch(self._apply)
            except TailraceError as error:
                _LOG.warning("watching gates and quotas failed, trying again: %s", error)
            await asyncio.sleep(WATCH_PAUSE)

    def _apply(self, snapshot: Any) -> None:
        first = not self.core.ready
        now = self._clock.monotonic()
        self.core.apply(snapshot.gates, snapshot.quotas, snapshot.functions, snapshot.version, now)
        self._soon()
        if first and not self.core.draining:
            self.duties.begin(self._health.set(True), "scheduler-health")
