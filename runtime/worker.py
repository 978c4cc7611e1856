"""A worker: attaches to schedulers, advertises the functions that it can run, runs items, and drains."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..foundation.looked_for import described
from ..model.errors import ConfigError
from ..model.labels import labels
from ..model.lease import LeaseSizes
from ..model.metrics import Sample
from ..model.outcome import Outcome
from ..model.reopening import IN_VAIN
from ..model.workload import Ended, Flight
from ..wire.convert import function_to_wire
from ..wire.scheduler import SchedulerSessions
from ..wire.session import Dialer
from ..wire.v1 import scheduler_pb2 as pb
from .attachment import Attachment, by_session
from .carried import CarriedRuns
from .config import WorkerConfig
from .executors import ExecutorProcess
from .frames import REF_MASK, SESSION_BITS
from .guard_handle import Guarding
from .labels import own_labels
from .loader import LoadedFunctions, load_functions
from .metrics import samples
from .registration import register, tell_failures, version_word
from .rules.attempt import Stop
from .rules.leases import Leases
from .rules.pools import allotted, unable
from .rules.silence import LOOKS
from .supervisor import Supervisor

LOG = logging.getLogger("tailrace.runtime")

#: Heartbeats before the end of a lease at which its items are told to end: after three that failed, and before
#: the kernel ends their process.
STOP_BEFORE = 0.5
#: Seconds that the last outcomes get to reach the scheduler.
LAST_WORDS = 2.0
#: Session numbers fit into a key's upper byte.
SESSIONS = 255


class Worker:
    """A Part. `functions` is what `load_functions` returned, or the modules to load.

    `schedulers` are addresses; each gets a session and an even share of the capacity. `gateway`: where the functions
    are registered (None: nowhere). start raises UserError when functions cannot be loaded.
    `process` makes an executor; a simulation has its own. `guard` is the process's own, where it has one (`guarding`).
    `registered_within`: seconds that the start waits for the gateway to know the functions.
    """

    def __init__(
        self,
        config: WorkerConfig,
        functions: LoadedFunctions | Sequence[str],
        schedulers: Sequence[str],
        gateway: str | None,
        sizes: LeaseSizes,
        clock: Clock = SYSTEM_CLOCK,
        *,
        process: Callable[..., ExecutorProcess] | None = None,
        guard: Guarding | None = None,
        registered_within: float = 0.0,
    ) -> None:
        if not schedulers:
            raise ConfigError("a worker needs the address of at least one scheduler, such as 127.0.0.1:8785")
        self.config = config
        self.name = config.name or f"{socket.gethostname()}:{os.getpid()}"
        loaded = functions if isinstance(functions, LoadedFunctions) else load_functions(functions)
        specs = {name: function.spec for name, function in loaded.functions.items()}
        self._labels = {**own_labels(), **labels(config.labels)}
        self._unable = unable(specs, self._labels)
        by_pool = allotted(specs, config.pools, config.serves, self._unable)
        self._check_unable(by_pool)
        served = {name: loaded.functions[name] for names in by_pool.values() for name in names}
        self._loaded = LoadedFunctions(loaded.modules, served)
        self._versions = {name: version_word(function.announced()) for name, function in served.items()}
        # Registered too, so that submissions wait for a worker that can run them, instead of being refused.
        self._registered = [*served.values(), *(loaded.functions[name] for name in self._unable)]
        self._addresses = list(schedulers)
        self._gateway = gateway
        self._registration: asyncio.Task[None] | None = None
        self._registered_within = registered_within
        self._sizes = sizes
        self._clock = clock
        self._leases = Leases()
        self._carried = CarriedRuns()
        self._last_session = 0
        self._supervisor = Supervisor(
            config,
            self._loaded,
            by_pool,
            earliest=self._leases.earliest,
            ended=self._ended,
            notes=self._noted,
            waits=self._waiting,
            limits=self._limits_changed,
            process=process,
            guard=guard,
            sizes=sizes,
        )
        self._attachments: list[Attachment] = []
        self._dialers: list[Dialer] = []
        self._sessions: list[SchedulerSessions] = []
        self.duties = Duties("worker")
        self._idle = asyncio.Event()
        self._draining = False
        self._counts: Counter[int] = Counter()  # items by outcome

    def _check_unable(self, by_pool: Mapping[str, Sequence[str]]) -> None:
        """Logs the functions that do not run here. Raises ConfigError where none does."""
        if self._unable and not by_pool:
            reasons = "; ".join(f"{name!r} requires {why}" for name, why in self._unable.items())
            raise ConfigError(f"no function of this worker's modules can run here: {reasons:.1000}. Set `labels`")
        for name, why in self._unable.items():
            LOG.warning("function %s does not run here: it requires %s", name, why)

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts the executors and registers the functions, so that a submission after it is accepted. Schedulers and
        gateway may come up later."""
        await self._supervisor.start()
        for address in self._addresses:
            self._attach(address)
        self.duties.begin(self._beat(), "worker-heartbeat")
        if self._gateway is not None:
            specs = [function.announced() for function in self._registered]
            self._registration = self.duties.begin(register(self._gateway, self.name, specs), "register")
            self.duties.begin(tell_failures(self._gateway, self.name, self._failing), "tell-failures")
            if self._registered_within:
                await asyncio.wait([self._registration], timeout=self._registered_within)

    async def drain(self, timeout: float) -> None:
        """Takes nothing new, hands back items that have not started, and lets running functions end for `timeout`
        seconds; a run that goes on then is stopped and reported lost, which spends no attempt. A run that waits for
        other work is stopped at once, since perhaps nobody is left to do that work."""
        self._draining = True
        for attachment in self._attachments:
            attachment.drain()
        self._supervisor.release()
        self._supervisor.stop_items(self._supervisor.parents(), Stop.DRAIN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._until_idle()
        keys = self._supervisor.inside()
        if keys:
            self._supervisor.stop_items(keys, Stop.DRAIN)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, timeout)):
                    await self._until_idle()
        await self._supervisor.stop("its worker was shut down")
        await self._last_words()

    async def stop(self) -> None:
        """Ends now. Runs are lost; the scheduler hears of it if it is quick."""
        await self.duties.end()
        await self._supervisor.stop("its worker was stopped")
        for dialer in self._dialers:
            await dialer.close()
        for sessions in self._sessions:
            await sessions.close()
        self._dialers, self._sessions = [], []

    @property
    def ready(self) -> bool:
        """Whether it is attached to a scheduler and takes work."""
        return not self._draining and any(attachment.connected for attachment in self._attachments)

    @property
    def executor_pids(self) -> list[int]:
        """Ids of the processes that run functions now."""
        return self._supervisor.pids()

    async def samples(self) -> list[Sample]:
        """Metrics of this worker now."""
        sessions = sum(attachment.connected for attachment in self._attachments)
        return samples(self._supervisor.all_pools(), self._counts, sessions, self._supervisor.times)

    async def attached(self) -> None:
        """Waits until a session with every scheduler is up, and the gateway knows the functions."""
        for dialer in self._dialers:
            await dialer.connected.wait()
        if self._registration is not None:
            await asyncio.wait([self._registration])

    async def _until_idle(self) -> None:
        self._idle.clear()
        while self._supervisor.inside():
            await self._idle.wait()
            self._idle.clear()

    async def _last_words(self) -> None:
        """Waits until the schedulers have acknowledged the last outcomes; a lease request makes them answer."""
        for attachment in self._attachments:
            attachment.ask_lease()
        end = self._clock.monotonic() + LAST_WORDS
        while self._clock.monotonic() < end and not all(  # noqa: ASYNC110 - acknowledgements raise no event
            not attachment.connected or (attachment.silent and dialer.settled)
            for attachment, dialer in zip(self._attachments, self._dialers, strict=True)
        ):
            await asyncio.sleep(0.01)

    # -- sessions ----------------------------------------------------------------------------------------------------

    def _attach(self, address: str) -> None:
        sessions = SchedulerSessions(address)
        attachment = Attachment(self, self._leases, self._clock)
        dialer = Dialer(
            sessions.attach_worker,
            lambda hello: self._hello(attachment, hello),
            attachment,
            pb.WorkerFrame,
            silence=2 * self._sizes.heartbeat,
            leases=self._sizes,
            clock=self._clock,
            unreachable=lambda reason: self._cannot_reach(address, reason),
            failed=lambda error: LOG.error(
                "a frame of scheduler %s could not be handled; a fresh session begins", address, exc_info=error
            ),
        )
        attachment.notify = dialer.notify
        self._sessions.append(sessions)
        self._attachments.append(attachment)
        self._dialers.append(dialer)
        dialer.start()

    def _cannot_reach(self, scheduler: str, reason: str) -> None:
        LOG.warning("scheduler %s does not answer: %s", described(scheduler), reason)
        why = f"{described(scheduler)} does not answer: {reason}"
        self.duties.ails(_calling(scheduler), why, self._clock.monotonic(), IN_VAIN)

    def _failing(self) -> str:
        """The reason why it cannot run its functions, or gets no work from a scheduler; empty: nothing ails it."""
        ailing = [what for _, what in self.duties.failing(self._clock.monotonic())]
        return "; ".join(filter(None, [self._supervisor.failure(), *ailing]))

    def _hello(self, attachment: Attachment, hello: pb.Hello) -> pb.WorkerFrame:
        attachment.hello()
        hello.name = self.name
        hello.functions.extend(function_to_wire(function.spec) for function in self._loaded.functions.values())
        hello.pools.extend(self.pools())
        hello.labels.update(self._labels)
        hello.unable.update(self._unable)
        hello.versions.update(self._versions)
        hello.carried.extend(self.carried(attachment.carries() | self._of_session(attachment.session)))
        return pb.WorkerFrame(hello=hello)

    async def _beat(self) -> None:
        look = 0
        while True:
            await asyncio.sleep(self._sizes.heartbeat / LOOKS)
            look += 1
            self._stop_ending()
            self._supervisor.watch(self._clock.monotonic())
            for address, attachment in zip(self._addresses, self._attachments, strict=True):
                if attachment.connected:
                    self.duties.well(_calling(address))
            if look % LOOKS == 0:
                inside = self._supervisor.inside()
                self._leases.keep(inside)
                self._carried.keep(inside)
                for attachment in self._attachments:
                    attachment.ask_lease()

    def _stop_ending(self) -> None:
        flights, items = self._leases.ending(self._clock.monotonic() + STOP_BEFORE * self._sizes.heartbeat)
        if flights:
            self._supervisor.stop_flights(flights, Stop.LEASE)
        if items:
            self._supervisor.stop_items(items, Stop.LEASE)

    # -- calls of attachments ----------------------------------------------------------------------------------------

    def new_session(self) -> int:
        """A session number that no live item bears."""
        used = {key >> SESSION_BITS for key in self._supervisor.inside()}
        used |= {attachment.session for attachment in self._attachments}
        while True:
            self._last_session = self._last_session % SESSIONS + 1
            if self._last_session not in used:
                return self._last_session

    def pools(self) -> list[pb.Pool]:
        """The pools, with the share of them that one scheduler may use."""
        share = len(self._addresses)
        return [
            pb.Pool(
                name=pool.name,
                functions=pool.functions,
                slots=max(min(1, pool.slots), pool.slots // share),
                limit=max(min(1, pool.limit), pool.limit // share),
                alone=pool.alone,
                failure=pool.failure,
            )
            for pool in self._supervisor.pools()
        ]

    def assigned(self, session: int, flight: Flight, fences: list[int], pool: str) -> None:
        """Runs a flight under a lease that `leases` knows."""
        self._carried.assigned(session, flight)
        self._supervisor.assign(session, flight, fences, pool)

    def renewed(self) -> None:
        """Sets kernel timers again, since leases were granted."""
        self._supervisor.set_timers()

    def cancelled(self, keys: set[int]) -> None:
        """Stops items that their owner cancelled."""
        self._supervisor.stop_items(keys, Stop.CANCELLED)

    def session_lost(self, session: int) -> set[int]:
        """Stops all items of a session that is lost; nobody wants to hear how they end. Returns the keys that are not
        over."""
        keys = self._of_session(session)
        self._supervisor.stop_items(keys, Stop.LEASE)
        return keys & self._supervisor.inside()

    def carried(self, keys: set[int]) -> list[pb.Carried]:
        """Number of these items by kind, as a frame says it."""
        return [pb.Carried(**kind._asdict(), count=count) for kind, count in self._carried.kinds(keys).items()]

    def _of_session(self, session: int) -> set[int]:
        return {key for key in self._supervisor.inside() if key >> SESSION_BITS == session}

    # -- calls of the supervisor -------------------------------------------------------------------------------------

    def _ended(self, succeeded: list[int], ended: dict[int, Ended]) -> None:
        self._counts[Outcome.SUCCESS] += len(succeeded)
        self._counts.update([each.outcome for each in ended.values()])
        for session, (refs, ends) in by_session(succeeded, ended).items():
            for attachment in self._attachments:
                if attachment.session == session:
                    attachment.ended(refs, ends)
        for attachment in self._attachments:
            if attachment.carries():
                attachment.over((*succeeded, *ended))
        self._supervisor.set_timers(self._clock.monotonic() + self._sizes.heartbeat)
        self._idle.set()

    def _noted(self, notes: list[tuple[int, str]]) -> None:
        for key, note in notes:
            for attachment in self._attachments:
                if attachment.session == key >> SESSION_BITS:
                    attachment.note(key & REF_MASK, note)

    def _waiting(self, waits: list[int], goes_on: list[int]) -> None:
        for keys, waiting in ((waits, True), (goes_on, False)):
            for key in keys:
                for attachment in self._attachments:
                    if attachment.session == key >> SESSION_BITS:
                        attachment.wait(key & REF_MASK, waiting)
        if self._draining and waits:
            self._supervisor.stop_items(set(waits), Stop.DRAIN)

    def _limits_changed(self) -> None:
        for attachment in self._attachments:
            attachment.pools_changed()


def _calling(scheduler: str) -> str:
    return f"calling the scheduler {scheduler}"


__all__ = ["Worker"]
