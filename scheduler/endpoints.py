"""The two kinds of session as the wire sees them: frames become events of the core, outboxes become frames.

Synchronous (an Endpoint of wire/session.py). Everything pending goes into one frame, up to about a mebibyte of
payloads or results; the rest follows in the next.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from ..foundation.clock import Clock
from ..model.demand import Closed
from ..model.errors import InvalidRequest, SessionLost
from ..model.function_spec import FunctionSpec
from ..model.grants import GrantedRights
from ..model.workload import FLIGHT_ITEMS, Ended, Flight, Kind, Outcomes
from ..wire.convert import (
    KindReader,
    KindWriter,
    function_to_wire,
    owned_from_wire,
    read_items,
    read_outcomes,
    write_items,
    write_outcomes,
)
from ..wire.link import Link
from ..wire.v1 import scheduler_pb2 as pb
from .core import Core
from .rules.placement import PoolLimits
from .rules.push_rights import PushRights
from .sessions import Adoption, Assignment, TailerSession, WorkerSession
from .start_delays import StartDelays
from .tracing import SchedulerTracing

#: A frame takes no more payload once it has this many bytes.
FRAME_BYTES = 1 << 20


class TailerEnd:
    """A tailer's session. `turn` is called after events that may let something start or be said. `granted`: the rights
    of its caller, where somebody gives it less than its role. `link`: its numbers tell which outcomes were heard."""

    def __init__(
        self,
        core: Core,
        tailer: TailerSession,
        link: Link,
        clock: Clock,
        turn: Callable[[], None],
        delays: StartDelays | None = None,
        tracing: SchedulerTracing | None = None,
        granted: GrantedRights | None = None,
    ) -> None:
        self.tailer = tailer
        self._link = link
        self._delays = StartDelays() if delays is None else delays
        self._tracing = tracing
        self._core = core
        self._clock = clock
        self._turn = turn
        self._kinds = KindReader()
        self._rights = None if granted is None else PushRights(granted)
        self._shut: frozenset[Closed] = frozenset()  # what all others are told is closed, as it was told last

    def opened(self, resumed: bool) -> None:
        self._core.tailer_connected(self.tailer)
        self._turn()

    def broken(self) -> None:
        self._heard()
        self._core.tailer_away(self.tailer, self._clock.monotonic())

    def lost(self) -> None:
        """Only the dialing half loses a session this way."""

    def accept(self, frame: pb.TailerFrame) -> None:
        """Takes a frame. Rows go first, since pushes rest on them; grants go before pushes, since a grant lists flights
        that were pushed in frames before it."""
        core, tailer = self._core, self.tailer
        if core.tailers.get(tailer.session) is not tailer:
            raise SessionLost(f"session {tailer.session} was replaced")
        now = self._clock.monotonic()
        if not math.isfinite(frame.grant.lease):
            raise InvalidRequest(
                f"tailer {tailer.name or tailer.session}: a grant has a lease of {frame.grant.lease} "
                "seconds: expected a number"
            )
        flights = [self._flight(push) for push in frame.pushes]
        for row in frame.listed:
            core.adoptions.show(tailer, (row.source, row.partition), row.epoch, row.version)
            self._saw(row.version, now)
        if frame.store:
            tailer.store, tailer.height = frame.store, core.heights.highest(frame.store)
            core.speaking.add(tailer)
            self._saw(tailer.shown, now)
        for ask in frame.adopt:
            core.adoptions.ask(tailer, (ask.source, ask.partition), ask.epoch, ask.version, self._clock.wall())
        if frame.HasField("grant"):
            core.granted(tailer, frame.grant.request, frame.grant.lease, frame.grant.flights)
        for push, flight in zip(frame.pushes, flights, strict=True):
            if flight.owned is None:
                self._saw(push.fence, now)
            if self._tracing is not None and flight.extras:
                self._tracing.pushed(tailer, flight, self._clock.wall())
            self._delays.pushed(tailer, flight, now)
            core.push(tailer, flight, push.lease_request, push.lease, now)
        if frame.cancel:
            core.cancel(tailer, frame.cancel)
        if frame.draining:
            core.tailer_draining(tailer)
        self._turn()

    def _flight(self, push: pb.Push) -> Flight:
        """A flight as it was pushed. Raises InvalidRequest for a message that cannot be one."""
        name = self.tailer.name or self.tailer.session
        if self._rights is not None:
            self._rights.check(push.items.new_kinds)
        flight = read_items(push.items, self._kinds, push.flight, push.fence)
        size = len(flight.ids)
        if push.HasField("owned"):
            flight.owned = owned_from_wire(push.owned, size)
        named = size if flight.owned is None else len(flight.owned.positions)
        columns = {len(flight.kinds), len(flight.payloads), len(flight.attempts), named}
        if columns != {size} or size > FLIGHT_ITEMS:
            raise InvalidRequest(
                f"flight {push.flight} of {name} has columns of different lengths or more than {FLIGHT_ITEMS} items: "
                "expected one kind, id, payload and position each"
            )
        if flight.extras and max(flight.extras) >= size:
            raise InvalidRequest(
                f"flight {push.flight} of {name} has fields for item {max(flight.extras)}, but {size} items"
            )
        if not math.isfinite(push.lease):
            raise InvalidRequest(
                f"flight {push.flight} of {name} has a lease of {push.lease} seconds: expected a number"
            )
        return flight

    def _saw(self, highest: int, now: float) -> None:
        """Notes a fence of the session's store, or a version of a row there: of both it has only one kind."""
        tailer = self.tailer
        tailer.shown = max(tailer.shown, highest)
        if tailer.store:
            self._core.heights.saw(tailer.store, highest, now, self._clock.wall())

    def compose(self) -> pb.TailerReply | None:
        tailer = self.tailer
        has_outcomes, credit = self.has_outcomes, self._has_credit()
        if not (
            has_outcomes
            or credit
            or tailer.request_due
            or tailer.adoptions
            or tailer.barred
            or tailer.height is not None
        ):
            return None
        reply = pb.TailerReply()
        if has_outcomes:
            outcomes = take_outcomes(tailer)
            if outcomes.ended:
                self._delays.ended(tailer, outcomes.ended, self._clock.monotonic())
                if self._tracing is not None:
                    self._tracing.ended(tailer, outcomes.ended, self._clock.wall())
            write_outcomes(reply.outcomes, outcomes)
            if tailer.rows:
                self._heard()
                gone = {} if self.has_outcomes else tailer.held.say_ended()
                tailer.unheard.say(self._link.next, outcomes, gone)
        if credit:
            self._write_credit(reply.credit)
        if tailer.request_due:
            tailer.request_due = False
            reply.lease_request.number = tailer.requests.send(self._clock.monotonic())
        if tailer.adoptions or tailer.barred:
            self._write_adoptions(reply)
        if tailer.height is not None:
            reply.height.store, reply.height.highest, tailer.height = tailer.store, tailer.height, None
        return reply

    def _heard(self) -> None:
        self.tailer.unheard.heard(self._link.last_heard)

    def _write_adoptions(self, reply: pb.TailerReply) -> None:
        tailer, now = self.tailer, self._clock.monotonic()
        for (source, partition), version in tailer.barred.items():
            reply.barred.add(source=source, partition=partition, version=version)
        reply.adoptions.extend([adoption_to_wire(answer, now) for answer in tailer.adoptions])
        tailer.barred, tailer.adoptions = {}, []

    @property
    def has_outcomes(self) -> bool:
        """Whether an item ended of which the tailer was not told yet."""
        return bool(self.tailer.succeeded or self.tailer.ended)

    def _has_credit(self) -> bool:
        tailer = self.tailer
        return bool(tailer.cells or tailer.closed is not None or tailer.functions or tailer.total)

    def _write_credit(self, credit: pb.Credit) -> None:
        tailer = self.tailer
        if self._rights is not None:
            self._close(self._rights)
        for cell, limit in tailer.cells.items():
            credit.cells.add(function=cell.function, priority=cell.priority, limit=limit)
        for closed in tailer.closed or ():
            credit.closed.add(**closed._asdict())
        credit.closed_changed = tailer.closed is not None
        credit.functions.extend([function_to_wire(spec) for spec in tailer.functions.values()])
        credit.total = tailer.total
        tailer.cells, tailer.closed, tailer.functions, tailer.total = {}, None, {}, 0

    def _close(self, rights: PushRights) -> None:
        """Closes to the session the cells that its caller has no right to push, beside those that are closed to all."""
        tailer = self.tailer
        more = rights.hears(cell.function for cell in tailer.cells)
        if tailer.closed is not None:
            self._shut = tailer.closed
        if more or tailer.closed is not None:
            tailer.closed = self._shut | rights.closed


class WorkerEnd:
    """A worker's session."""

    def __init__(
        self,
        core: Core,
        worker: WorkerSession,
        clock: Clock,
        turn: Callable[[], None],
        delays: StartDelays | None = None,
        tracing: SchedulerTracing | None = None,
    ) -> None:
        self.worker = worker
        self._delays = StartDelays() if delays is None else delays
        self._tracing = tracing
        self._announced: tuple[list[FunctionSpec], list[PoolLimits]] = ([], [])  # by the hello that is about to open
        self._core = core
        self._clock = clock
        self._turn = turn
        self._kinds = KindWriter()

    def announce(self, hello: pb.Hello, specs: list[FunctionSpec]) -> None:
        """Takes the description of a worker from its hello; it opens the connection next."""
        self._announced = (specs, pools_from_wire(hello.pools))
        self.worker.labels, self.worker.unable = dict(hello.labels), dict(hello.unable)
        self.worker.versions = dict(hello.versions)

    def opened(self, resumed: bool) -> None:
        self._core.worker_connected(self.worker, *self._announced, self._clock.monotonic())
        self._turn()

    def broken(self) -> None:
        self._core.worker_away(self.worker, self._clock.monotonic())
        self._turn()

    def lost(self) -> None:
        """Only the dialing half loses a session this way."""

    def accept(self, frame: pb.WorkerFrame) -> None:
        core, worker = self._core, self.worker
        if not worker.connected or core.workers.get(worker.session) is not worker:
            raise SessionLost(f"session {worker.session} was replaced")
        worker.heard_at = self._clock.wall()
        if frame.HasField("outcomes"):
            core.report(worker, read_outcomes(frame.outcomes), self._clock.monotonic(), self._clock.wall())
        if frame.waits or frame.goes_on:
            core.waits(worker, frame.waits, frame.goes_on, self._clock.monotonic())
        if frame.carried_changed:
            core.limits.carry(worker, read_carried(frame.carried), self._clock.monotonic())
        if frame.HasField("lease_request"):
            core.lease_requested(worker, frame.lease_request.number, self._clock.monotonic())
        if frame.pools:
            self._check_pools(frame.pools)
            core.worker_pools(worker, pools_from_wire(frame.pools), self._clock.monotonic())
        if frame.draining:
            core.worker_draining(worker, self._clock.monotonic())
        self._turn()

    def _check_pools(self, pools: Iterable[pb.Pool]) -> None:
        """Refuses pools that the hello did not name: the rights of its caller were checked for those."""
        for pool in pools:
            if pool.name not in self.worker.pools or not {*pool.functions} <= {*self.worker.pools[pool.name].functions}:
                raise InvalidRequest(
                    f"worker {self.worker.name!r} changes its pool {pool.name!r}, which its hello did not name with "
                    "these functions: begin a session anew"
                )

    def compose(self) -> pb.WorkerReply | None:
        worker = self.worker
        if not (worker.assignments or worker.grants_due or worker.cancel):
            return None
        now = self._clock.monotonic()
        reply = pb.WorkerReply()
        size = 0
        while size < FRAME_BYTES and (made := self._core.assignment(worker, now)) is not None:
            self._write_assign(reply.assigns.add(), *made)
            size += made[0].bytes
        if self._core.speaking:
            self._turn()
        if worker.grants_due:
            worker.grants_due = False
            reply.grants.request = worker.granted.number
            for group, lease in self._core.grants(worker, now):
                reply.grants.groups.add(group=group, lease=lease)
            reply.grants.revoked.extend(worker.revoked)
        if worker.cancel:
            reply.cancel.extend(worker.cancel)
            worker.cancel.clear()
        if reply.assigns or reply.HasField("grants") or reply.cancel:
            return reply
        return None

    def _write_assign(self, assign: pb.Assign, made: Assignment, lease: float) -> None:
        assign.flight = made.flight
        assign.group = made.tailer.group
        assign.lease_request = self.worker.granted.number
        assign.lease = lease
        assign.pool = made.pool.name
        _, _, ids, payloads, kinds, attempts, fences, extras, _ = zip(*made.items, strict=True)
        few = {index: extra for index, extra in enumerate(extras) if extra} if any(extras) else {}
        write_items(assign.items, self._kinds, (kinds, ids, payloads, attempts), few)
        self._delays.assigned(made.items, self._clock.monotonic())
        if few and self._tracing is not None:
            self._tracing.assigned(made.items, few, self.worker.name, self._clock.wall())
        assign.fence.extend(fences)
        assign.items.wants_result = made.tailer.wants_result


def adoption_to_wire(answer: Adoption, now: float) -> pb.Adoption:
    """The answer to a tailer that asked to adopt."""
    source, partition = answer.row
    return pb.Adoption(
        source=source,
        partition=partition,
        version=answer.version,
        confirmed=not answer.refused,
        reason=answer.refused,
        lease=max(0.0, answer.until - now),
        flights=[
            pb.AdoptedFlight(flight=number, fence=fence, part=part, index=indexes, positions=positions)
            for number, fence, part, indexes, positions in answer.flights
        ],
    )


def read_carried(carried: Iterable[pb.Carried]) -> Counter[Kind]:
    """Runs by kind, of sessions that this scheduler does not know."""
    found = Counter[Kind]()
    for each in carried:
        found[Kind(each.function, each.priority, each.collection, each.tenant)] += each.count
    return found


def pools_from_wire(pools: Iterable[pb.Pool]) -> list[PoolLimits]:
    """The limits of a worker's pools, as it announced them."""
    return [
        PoolLimits(pool.name, tuple(pool.functions), pool.slots, pool.limit, pool.alone, pool.failure) for pool in pools
    ]


def take_outcomes(tailer: TailerSession) -> Outcomes:
    """Empties a session's outbox of outcomes, up to a frame's worth of results; the rest stays for the next frame."""
    succeeded, tailer.succeeded = tailer.succeeded, []
    ended = tailer.ended
    size = count = 0
    for end in ended.values():
        count += 1
        size += len(end.result or b"") + len(end.reason)
        if size >= FRAME_BYTES:
            break
    if count == len(ended):
        tailer.ended = {}
        return Outcomes(succeeded, ended)
    taken: dict[int, Ended] = dict(islice(ended.items(), count))
    for ref in taken:
        del ended[ref]
    return Outcomes(succeeded, taken)
