"""Rights to run as the world sees them: the grants of each part to the next and their ends, read from the wire and from
the stores, in true time.

A chain from a run to its source: a run ends before the lease that its worker was granted, a worker's lease a kill
margin before that of the scheduler, a scheduler's before the source may be another's. Each link is worked out from what
was said, when it was sent, and how fast its holder's clock goes; nothing that a host believes is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Protocol

from ...model.lease import LeaseSizes
from ...wire.v1 import scheduler_pb2 as pb
from .host import Host
from .journal import ROUNDING, Execution, Journal
from .sqlite_disk import Disk
from .world import World

_OWNERS = "SELECT source, partition, version, epoch, lease FROM ownership"
#: A right: an item in one hand-out, by its id and the fence.
Right = tuple[str, int]


class SessionStream(Protocol):
    """A stream between two hosts as the world sees it. `session` is the name in its first message, and once it is
    welcomed the session's name here."""

    client: Host
    target: Host | None
    server_name: str
    session: str
    opened: float


class Rights:
    """The rights to run that were granted. Invariants: every time here is true time, and none is later than its granter
    allowed.

    asked      when each lease request was sent: session and number → time, and seconds that the asker counts in one
    groups     until when a group of a worker's session may run
    given      each hand-out → the group that it is in, by worker
    held       until when a scheduler has a hand-out
    sources    until when an epoch of a row, or a fence of the queue, is nobody else's
    """

    def __init__(self, world: World, journal: Journal, disk: Disk, sizes: LeaseSizes) -> None:
        self._world = world
        self._journal = journal
        self._disk = disk
        self._sizes = sizes
        self._begun: Counter[tuple[str, str]] = Counter()
        self._asked: dict[tuple[str, bool, int], tuple[float, float]] = {}
        self._groups: dict[tuple[str, int], float] = {}
        self._given: dict[tuple[str, str, int], tuple[str, int]] = {}
        self._flights: dict[tuple[str, int], list[Right]] = {}
        self._by_fence: defaultdict[int, set[str]] = defaultdict(set)
        self._held: dict[Right, float] = {}
        self._schedulers: defaultdict[Right, set[str]] = defaultdict(set)
        self._tailers: defaultdict[Right, set[str]] = defaultdict(set)
        self._owned: dict[tuple[str, int], tuple[str, str]] = {}
        self._shown: dict[tuple[str, str, str], int] = {}
        self._sources: dict[tuple[str, str, int], float] = {}
        self._versions: dict[tuple[str, str], int] = {}
        self.claims: dict[int, float] = {}
        self._take: dict[type[Any], Callable[[SessionStream, Any], None]] = {
            pb.WorkerFrame: self._from_worker,
            pb.WorkerReply: self._to_worker,
            pb.TailerFrame: self._from_tailer,
            pb.TailerReply: self._to_tailer,
        }
        journal.ends.append(self._ended)
        journal.goes_on.append(self._goes_on)

    # ---- what is said

    def said(self, stream: SessionStream, message: Any) -> None:
        """Notes a message of a stream that is about to leave."""
        take = self._take.get(type(message))
        if take is not None:
            take(stream, message)

    def _asks(self, session: str, *, worker: bool, number: int, host: Host) -> None:
        self._asked.setdefault((session, worker, number), (self._world.now, host.clock.rate))

    def _until(self, session: str, worker: bool, number: int, lease: float) -> float:
        """The end of a lease that counts from when its request was sent, by the asker's clock."""
        sent, rate = self._asked.get((session, worker, number), (0.0, 1.0))
        return sent + lease / rate

    def _hello(self, stream: SessionStream, hello: pb.Hello) -> None:
        stream.session, stream.opened = hello.session, self._world.now

    def _welcome(self, stream: SessionStream, welcome: pb.Welcome) -> None:
        """Notes that a session begins or goes on. Its id may be known to several schedulers, and begin anew with each
        of them."""
        known = (welcome.session or stream.session, welcome.scheduler)
        self._begun[known] += not welcome.resumed
        stream.session = f"{known} {self._begun[known]}"

    def _from_worker(self, stream: SessionStream, frame: pb.WorkerFrame) -> None:
        if frame.HasField("hello"):
            self._hello(stream, frame.hello)
        if frame.HasField("lease_request"):
            self._asks(stream.session, worker=True, number=frame.lease_request.number, host=stream.client)

    def _to_worker(self, stream: SessionStream, frame: pb.WorkerReply) -> None:
        if frame.HasField("welcome"):
            self._welcome(stream, frame.welcome)
            if (stream.session, True, 1) not in self._asked:  # which hello was heard last is not known: this, at most
                self._asked[stream.session, True, 0] = (stream.opened, stream.client.clock.rate)
        session = stream.session
        if frame.HasField("grants"):
            for group in frame.grants.groups:
                self._grant(session, group.group, frame.grants.request, group.lease)
        for assign in frame.assigns:
            self._grant(session, assign.group, assign.lease_request, assign.lease)
            for id_, fence in zip(assign.items.id, assign.fence, strict=True):
                self._given[stream.client.name, id_, fence] = (session, assign.group)
                self._schedulers[id_, fence].add(stream.server_name)

    def _grant(self, session: str, group: int, request: int, lease: float) -> None:
        until = self._until(session, True, request, lease)
        self._groups[session, group] = max(until, self._groups.get((session, group), 0.0))

    def _to_tailer(self, stream: SessionStream, frame: pb.TailerReply) -> None:
        scheduler = stream.target
        assert scheduler is not None
        if frame.HasField("welcome"):
            self._welcome(stream, frame.welcome)
            self._asks(stream.session, worker=False, number=0, host=scheduler)
        session = stream.session
        if frame.HasField("lease_request"):
            self._asks(session, worker=False, number=frame.lease_request.number, host=scheduler)
        for adoption in frame.adoptions:
            for flight in adoption.flights:
                ids = self._by_fence[flight.fence]
                self._flights[session, flight.flight] = [(id_, flight.fence) for id_ in sorted(ids)]
                self._owned[session, flight.flight] = (adoption.source, adoption.partition)

    def _from_tailer(self, stream: SessionStream, frame: pb.TailerFrame) -> None:
        if frame.HasField("hello"):
            self._hello(stream, frame.hello)
        session = stream.session
        for row in frame.listed:
            self._shown[session, row.source, row.partition] = row.epoch
        if frame.HasField("grant"):
            until = self._until(session, False, frame.grant.request, frame.grant.lease)
            for flight in frame.grant.flights:
                self._hold(stream, session, flight, until)
        for push in frame.pushes:
            self._flights[session, push.flight] = [(id_, push.fence) for id_ in push.items.id]
            self._by_fence[push.fence].update(push.items.id)
            if push.HasField("owned"):
                self._owned[session, push.flight] = (push.owned.source, push.owned.partition)
            self._hold(stream, session, push.flight, self._until(session, False, push.lease_request, push.lease))

    def _hold(self, stream: SessionStream, session: str, flight: int, until: float) -> None:
        rights = self._flights.get((session, flight), [])
        for right in rights:
            self._tailers[right].add(stream.client.name)
            self._held[right] = max(until, self._held.get(right, 0.0))
        if not rights or until <= self._world.now:
            return
        ends = self._source_ends(session, flight, rights[0][1])
        if ends is not None and until > ends + ROUNDING:
            self._journal.wrong(
                f"granted: {stream.client.name} grants {rights[0][0]} to {until:.3f}, but its source may be another's"
                f" from {ends:.3f} on"
            )

    # ---- what the stores know

    def _source_ends(self, session: str, flight: int, fence: int) -> float | None:
        owned = self._owned.get((session, flight))
        if owned is None:
            return self.claims.get(fence)
        epoch = self._shown.get((session, *owned))
        return None if epoch is None else self._sources.get((*owned, epoch))

    def committed(self, file: str) -> None:
        """Notes rows of ownership that a commit wrote: a successor that waits for such a row to stand still begins
        anew."""
        if file != "state":
            return
        for source, partition, version, epoch, lease in self._disk.rows("state", _OWNERS):
            if self._versions.get((source, partition)) != version:
                self._versions[source, partition] = version
                self._sources[source, partition, epoch] = self._world.now + lease / (1 - self._sizes.rho)

    def claimed(self, fence: int, seconds: float) -> None:
        """Notes that the queue granted a claim for `seconds` by its clock, which may be fast."""
        self.claims[fence] = max(self.claims.get(fence, 0.0), self._world.now + seconds / (1 + self._sizes.rho))

    # ---- runs

    def path(self, id: str, fence: int) -> tuple[set[str], set[str]]:
        """The schedulers and the tailers that had a hand-out."""
        return self._schedulers[id, fence], self._tailers[id, fence]

    def ends(self, run: Execution) -> tuple[float, str]:
        """The latest time at which a run must have ended, and the reason."""
        worker = run.where.partition("/")[0]
        group = self._given.get((worker, run.id, run.fence))
        if group is None:
            return 0.0, "nobody gave it to that worker"
        of_worker = self._groups[group]
        held = self._held.get((run.id, run.fence), 0.0) - self._sizes.kill_margin
        if held < of_worker:
            return held, "a kill margin later its scheduler has it no more"
        return of_worker, "that was its worker's lease"

    def _ended(self, run: Execution) -> None:
        assert run.end is not None
        self._within(run, run.end, "ran")

    def _goes_on(self, run: Execution) -> None:
        self._within(run, self._world.now, "goes on after a freeze")

    def _within(self, run: Execution, now: float, what: str) -> None:
        ends, why = self.ends(run)
        if now > ends + ROUNDING:
            text = f"beyond its lease: {run.id} {what} in {run.where} until {now:.3f}, not {ends:.3f}: {why}"
            self._journal.wrong(text)
