"""The service of a gateway behind its listener: composes the desks (request handlers) that answer its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.metrics import Sample, samples, sorted_samples
from ..stores.trusted_time import TrustedTime
from ..wire.bounds import Endings
from ..wire.callers import Tokens
from ..wire.submissions import answer_submissions, new_name, possible
from ..wire.v1 import gateway_pb2 as pb
from .act_subjects import Subjects
from .acts import ActDesk
from .alerting import Alerting
from .config import GatewayConfig
from .control import ControlDesk
from .dead_letters import DeadLetterDesk
from .environment import DeclaredFiles, GatewayStores, Neighbours
from .failures import FailureDesk
from .file_desk import FileDesk
from .guarded_jobs import GuardedJobs
from .guarded_letters import GuardedLetters
from .item_desk import ItemDesk
from .job_desk import JobDesk
from .known_functions import KnownFunctions
from .members import OtherMembers
from .oidc import IssuedTokens
from .overview import OverviewDesk
from .replay_desk import ReplayDesk
from .rules.highest_priority import HighestPriorities
from .rules.tokens import KnownTokens
from .schedule_desk import ScheduleDesk
from .spooling import Spooler, spool_rule
from .status import StatusDesk
from .submitter import Submitter
from .tailer_desk import TailerDesk
from .tenant_room import WAITING, TenantRoom
from .tokens import TokenDesk
from .usage import UsageDesk

if TYPE_CHECKING:
    from .callbacks import Callbacks


class GatewayService:
    """A gateway without a listener: a WorkloadPort itself, with the desks that answer the other ports.

    The desks share the registered functions, the spool and the alerts. `direct` is the address for submissions of this
    machine without gRPC; empty: there is none.
    """

    def __init__(
        self, config: GatewayConfig, stores: GatewayStores, beside: Neighbours, clock: Clock, duties: Duties
    ) -> None:
        functions = KnownFunctions()
        alerting = Alerting(config, clock)
        queue, letters, spool = stores.queue, stores.dead_letters, stores.spool
        spooler: Spooler | None = None
        if spool is not None:
            spooler = Spooler(queue, spool, spool_rule(config), clock, config.store_patience, duties)
        highest = HighestPriorities()
        room = TenantRoom(WAITING, queue.held, clock, duties)
        submitter = Submitter(
            config, queue, functions, clock, alerting.refusals, spooler, alerting.submissions, highest, room
        )
        status = StatusDesk(config, queue, stores.results, clock, spooler, duties, beside.runners, beside.troubles)
        items = ItemDesk(config, queue, clock, spooler, highest)
        known, trusted = KnownTokens(), stores.trusted or TrustedTime(clock)
        self._issued = None if config.oidc is None else IssuedTokens(known, config.oidc, clock, duties)
        self.tokens: Tokens = self._issued or known
        control = ControlDesk(
            stores.control, functions, clock, config.watchers, spool, duties, config.capacity, highest, known, trusted
        )
        dead = DeadLetterDesk(config, queue, letters, functions, clock, duties, stores.jobs)
        others = OtherMembers(stores.control, beside.member)
        overview = OverviewDesk(
            alerting,
            queue,
            letters,
            control.gates,
            beside.overview,
            FailureDesk(clock),
            duties,
            spooler,
            beside.troubles,
            others,
        )
        schedules = ScheduleDesk(config, stores.schedules, functions, clock, duties)

        self.endings = Endings(lambda what: alerting.peers.note(what, clock.wall()))
        alerting.ended_peers = self.endings.counts
        self.direct = new_name() if config.direct and possible() else ""
        self.status, self.result = status.status, status.result
        self.cancel, self.find = status.cancel, status.find
        self.reschedule, self.peek = items.reschedule, items.peek
        self.functions, self.schedules = control, schedules
        job_desk = JobDesk(config, stores.jobs, functions, highest, clock, duties, room)
        replays = ReplayDesk(beside.replays)
        self._rooms = [room, *job_desk.rooms]
        jobs = GuardedJobs(job_desk)
        self._callbacks: Callbacks | None = None
        if config.callbacks is not None and stores.jobs is not None:
            from .callbacks import Callbacks  # its client takes a tenth of a second to import

            self._callbacks = Callbacks(config.callbacks, queue, letters, clock, duties)
        subjects = Subjects(status.status, stores.schedules, dead, job_desk, replays)
        self.acts = ActDesk(stores.control, control.known, subjects, config.act_retention, clock, trusted, duties)
        self.for_operators = {
            "acts": self.acts,
            "files": FileDesk(beside.files),
            "job_audits": jobs,
            "job_pages": jobs,
            "jobs": jobs,
            "letters": GuardedLetters(dead),
            "limits": control,
            "overview": overview,
            "replays": replays,
            "tailers": TailerDesk(beside.tailers, beside.audits, stores.drops, control, others, stores.tailers),
            "tokens": TokenDesk(stores.control, control.refresh, clock),
            "usage": UsageDesk(stores.usage, clock, trusted),
        }

        self._look_every = config.look_every
        self._spooler = spooler
        self._submitter, self._waits, self._control = submitter, (status.waits, job_desk.waits), control
        self._dead, self._overview = dead, overview
        self._alerting = alerting

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply:
        """Stores all workloads, and answers with the direct address if the client asks for it."""
        reply = await self._submitter.submit(request)
        if request.asks_direct:
            reply.direct = self.direct
        return reply

    async def submissions(self, stream: Any) -> None:
        """Answers submissions that come over one stream."""
        await answer_submissions(self._submitter.submit, stream)

    @property
    def inside(self) -> int:
        """Number of workloads that are being stored."""
        return self._submitter.inside

    async def samples(self) -> list[Sample]:
        """The metrics of the platform, as far as this gateway knows them, and its own."""
        whole, seen = await self._overview.overview(), self._alerting
        return sorted_samples([*samples(whole), *seen.submissions.samples(), *seen.objectives.samples()])

    async def start(self, declared: DeclaredFiles) -> None:
        """Applies quotas and schedules of files, and goes on with the spool and redrives of an earlier run."""
        store_read = await self._control.start(declared.quotas)
        if self._spooler is not None:
            await self._spooler.start()
        await self.schedules.start(declared.schedules, wait=store_read)
        if self._issued is not None:
            self._issued.start()
        self.acts.start()
        if self._callbacks is not None:
            self._callbacks.start()
        for room in self._rooms:
            room.start()
        for waits in self._waits:
            waits.start()
        self._dead.start()
        self._overview.start(self._look_every)

    async def declare(self, before: DeclaredFiles, now: DeclaredFiles) -> None:
        """Applies changed files; a quota or schedule that is only in the former ones is removed."""
        await self._control.declare(before.quotas, now.quotas)
        await self.schedules.start(now.schedules)

    def close(self) -> None:
        """Refuses new submissions, and ends waits for results and watches."""
        self._submitter.close()
        for waits in self._waits:
            waits.close()
        self._control.close()

    async def stop(self) -> None:
        """Ends all tasks between calls except the spool's drain. Harmless twice, and after a failed start."""
        self._submitter.close()
        await self.schedules.stop()
        await self._overview.stop()
        await self._dead.stop()
        await self._control.stop()
        await self.acts.stop()
        for waits in self._waits:
            await waits.stop()

    async def stop_spooling(self) -> None:
        """Ends the spool's drain, once no call is inside any more; spooled workloads stay for the next run."""
        if self._spooler is not None:
            await self._spooler.stop()
