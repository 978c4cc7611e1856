"""A tailer's end of its session with a scheduler: pushes and lease grants out, outcomes, credit and lease requests in.

The session keeps the promises of the lease chain towards the scheduler (L1, L4, L5): a push names the scheduler's last
lease request, a grant answers one, and neither is longer than the tailer still holds its source. The session remembers
its last grant, because items of a lost session are handed out again only when that grant is over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ..foundation.clock import Clock
from ..model.demand import Cell, Closed
from ..model.function_spec import FunctionSpec
from ..model.height import Height
from ..model.lease import LeaseSizes, grant_to_scheduler, wait_for_scheduler
from ..model.workload import Flight, Outcomes
from ..wire.convert import KindWriter, function_from_wire, owned_to_wire, read_outcomes, write_items
from ..wire.scheduler import SchedulerSessions
from ..wire.session import Dialer
from ..wire.v1 import scheduler_pb2 as pb
from .height_check import HeightCheck
from .rules.credit import Credit

#: Payload bytes after which a frame takes no further flight: a fraction of the largest gRPC message.
FRAME_BYTES = 1 << 20


class Inheritance(NamedTuple):
    """A former owner's flight that was adopted: its number in this session, its fence, and its remaining items, as
    positions in a part of the source, by index."""

    flight: int
    fence: int
    part: str
    positions: dict[int, int]


class Adopted(NamedTuple):
    """The answer of a scheduler to a request to adopt. `refused`: why it refused; empty: it agreed."""

    refused: str
    flights: Sequence[Inheritance] = ()


class Renewal(NamedTuple):
    """A lease grant: the tailer still holds each flight named for `seconds` more."""

    seconds: float
    flights: list[int]


class SessionPump(Protocol):
    """The pump behind a session. Nothing here may block.

    held_for         the seconds for which the pump still holds the source of this flight
    renewal          the grant for everything that is out and not settled
    outcomes_came    a batch of ends came; credit has not been returned yet
    session_opened   a connection to `scheduler` is up, or that scheduler wants to see the row as it stands now
    credit_changed   limits, gates or functions are new
    session_lost     the session is gone for good; its flights may be handed out again after `wait` seconds, those in
                     `unsent` at once
    """

    def held_for(self, flight: int) -> float: ...

    def renewal(self) -> Renewal: ...

    def outcomes_came(self, outcomes: Outcomes) -> None: ...

    def session_opened(self) -> None: ...

    def credit_changed(self) -> None: ...

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None: ...


class SchedulerSession:
    """One tailer's session. `unreachable`: why the scheduler cannot be reached; empty while it can. `height_check`
    decides when pushes may begin on a new connection; None: at once."""

    def __init__(
        self,
        address: str,
        name: str,
        owner: SessionPump,
        sizes: LeaseSizes,
        clock: Clock,
        *,
        through_outages: bool = False,
        height_check: HeightCheck | None = None,
    ) -> None:
        self.credit = Credit()
        self.functions: dict[str, FunctionSpec] = {}
        self.estimating: set[str] = set()  # functions with estimates of what their items use
        self.unreachable = ""
        self._name = name
        self._through_outages = through_outages
        self._owner = owner
        self._sizes = sizes
        self._clock = clock
        self._height_check = height_check
        self._store = ""  # the store whose height is to be asked for; empty: none
        self._held_back = False  # nothing may be pushed yet
        self._kinds = KindWriter()
        self._unsent: deque[Flight] = deque()
        self._cancel: list[int] = []
        self._draining = False
        self._say_draining = False
        self._request = 0  # the scheduler's last lease request
        self._owed = False  # it has not been answered
        self._granted_until = 0.0  # by this host's clock, drift included
        self._rows: list[pb.Listed] = []
        self._asks: list[pb.Adopt] = []
        self._asked: dict[tuple[str, str, int], asyncio.Future[Adopted]] = {}
        self._sessions = SchedulerSessions(address)
        self._dialer = Dialer(
            self._sessions.attach_tailer,
            self._hello,
            self,
            pb.TailerFrame,
            silence=2 * sizes.heartbeat + sizes.round_trip,
            leases=sizes,
            clock=clock,
            unreachable=self._cannot_reach,
        )

    def start(self) -> None:
        """Begins to dial."""
        self._dialer.start()

    async def close(self) -> None:
        """Ends the session."""
        await self._dialer.close()
        await self._sessions.close()

    async def wait(self) -> None:
        """Waits until the session fails, and raises its error."""
        await self._dialer.wait()

    @property
    def connected(self) -> bool:
        """Whether a connection is up."""
        return self._dialer.connected.is_set()

    @property
    def scheduler(self) -> str:
        """The id of the scheduler that this session is with; empty before the first connection."""
        return self._dialer.peer

    def push(self, flight: Flight) -> None:
        """Hands out a flight. Its credit must have been taken."""
        self._unsent.append(flight)
        self._dialer.notify()

    def withdraw(self, number: int) -> None:
        """Takes back the flight that was pushed last and has not been sent."""
        assert self._unsent[-1].number == number, "only a flight that was pushed in this very step can be withdrawn"
        self._unsent.pop()

    def show(self, source: str, partition: str, epoch: int, version: int) -> None:
        """Shows the ownership row, as it was written last, before anything that is pushed from now on. The row names
        this scheduler, and every other one at which adopted items may be running."""
        self._rows.append(pb.Listed(source=source, partition=partition, epoch=epoch, version=version))
        self._dialer.notify()

    async def adopt(self, source: str, partition: str, epoch: int, version: int) -> Adopted:
        """Asks the scheduler to hand over the running items of a row's owner, as the row was read. The row may be taken
        with that version once all schedulers that it lists (at least one) have confirmed. The flights are this
        session's when the new row is shown, and must be named in its renewals from then on. Waits until there is an
        answer, however long."""
        key = (source, partition, version)
        future = self._asked.get(key)
        if future is None:
            future = self._asked[key] = asyncio.get_running_loop().create_future()
            self._asks.append(pb.Adopt(source=source, partition=partition, epoch=epoch, version=version))
            self._dialer.notify()
        return await asyncio.shield(future)

    def cancel(self, refs: Iterable[int]) -> None:
        """Asks the scheduler to have items cancelled in the process that has them."""
        self._cancel.extend(refs)
        self._dialer.notify()

    def drain(self) -> None:
        """Tells the scheduler that nothing more will be pushed."""
        self._draining = self._say_draining = True
        self._dialer.notify()

    def wait_before_again(self) -> float:
        """Seconds until nothing can be running under a grant made so far."""
        return max(0.0, self._granted_until - self._clock.monotonic())

    # For the height check.

    def ask_height(self, name: str) -> None:
        """Asks the scheduler for the highest number that it saw this store give."""
        self._store = name
        self._dialer.notify()

    def may_push(self) -> None:
        """Lets pushes begin: the store is as high as this scheduler saw it."""
        self._held_back = False
        self._dialer.notify()

    # The endpoint of the link.

    def opened(self, resumed: bool) -> None:
        self.unreachable = self._store = ""
        check = self._height_check
        self._held_back = check is not None and check.opened(self)
        if not resumed:
            self._kinds = KindWriter()
            self._request = 0
            self._owed = False
            self._say_draining = self._draining
        self._owner.session_opened()
        self._owner.credit_changed()

    def compose(self) -> pb.TailerFrame | None:
        rows = self._rows or self._asks
        pushes = self._unsent and not self._held_back
        if not (pushes or self._owed or self._cancel or self._say_draining or rows or self._store):
            return None
        frame = pb.TailerFrame(cancel=self._cancel, draining=self._say_draining, store=self._store)
        self._store = ""
        if rows:
            frame.listed.extend(self._rows)
            frame.adopt.extend(self._asks)
            self._rows, self._asks = [], []
        self._cancel = []
        self._say_draining = False
        if self._owed:
            self._grant(frame)
        size = 0
        while pushes and self._unsent and size < FRAME_BYTES:
            flight = self._unsent.popleft()
            lease = self._granting(self._owner.held_for(flight.number))
            push = frame.pushes.add(flight=flight.number, fence=flight.fence, lease_request=self._request, lease=lease)
            columns = (flight.kinds, flight.ids, flight.payloads, flight.attempts)
            write_items(push.items, self._kinds, columns, flight.extras)
            push.items.wants_result = flight.wants_result
            if flight.dues:
                now = self._clock.wall()
                push.items.waited.extend([max(0.0, now - due) if due else -1.0 for due in flight.dues])
            if flight.owned is not None:
                push.owned.CopyFrom(owned_to_wire(flight.owned))
            size += sum(map(len, flight.payloads))
        return frame

    def accept(self, frame: pb.TailerReply) -> None:
        if frame.HasField("lease_request"):
            self._request = frame.lease_request.number
            self._owed = True
            self._dialer.notify()
        if frame.HasField("credit"):  # first: a failure that clogs its function settles as one of a clogged function
            self._take_credit(frame.credit)
        for answer in frame.adoptions:
            self._adopted(answer)
        if frame.HasField("height") and self._height_check is not None:
            self._height_check.told(Height(frame.height.store, frame.height.highest))
        if frame.barred:
            self._owner.session_opened()
        if frame.HasField("outcomes"):
            self._owner.outcomes_came(read_outcomes(frame.outcomes))
        if frame.HasField("credit"):
            self._owner.credit_changed()

    def broken(self) -> None:
        self.unreachable = "the connection to the scheduler broke"

    def lost(self) -> None:
        unsent = [flight.number for flight in self._unsent]
        self._unsent.clear()
        self._cancel.clear()
        self._rows, self._asks = [], []
        for future in self._asked.values():
            future.set_result(Adopted("the session with the scheduler was lost"))
        self._asked.clear()
        self._owed = False
        self.credit = Credit()  # credit that was reserved in the old one is given back there
        wait, self._granted_until = self.wait_before_again(), 0.0
        self._owner.session_lost(wait, unsent)

    def _hello(self, hello: pb.Hello) -> pb.TailerFrame:
        hello.name = self._name
        hello.through_outages = self._through_outages
        return pb.TailerFrame(hello=hello)

    def _cannot_reach(self, reason: str) -> None:
        self.unreachable = f"the scheduler cannot be reached: {reason}"

    def _grant(self, frame: pb.TailerFrame) -> None:
        renewal = self._owner.renewal()
        frame.grant.request = self._request
        frame.grant.lease = self._granting(renewal.seconds) if renewal.flights else 0.0
        frame.grant.flights.extend(renewal.flights)
        self._owed = False

    def _adopted(self, answer: pb.Adoption) -> None:
        """Takes an answer to `adopt`. Adopted items run on under their former owner's grants, which this tailer waits
        out like its own."""
        flights = [
            Inheritance(
                flight.flight, flight.fence, flight.part, dict(zip(flight.index, flight.positions, strict=True))
            )
            for flight in answer.flights
        ]
        until = self._clock.monotonic() + wait_for_scheduler(self._sizes, answer.lease)
        self._granted_until = max(self._granted_until, until)
        future = self._asked.pop((answer.source, answer.partition, answer.version), None)
        if future is not None:
            future.set_result(Adopted(answer.reason if not answer.confirmed else "", flights))

    def _granting(self, held: float) -> float:
        """The lease to grant now, which is remembered: the scheduler's clock for it started before this moment."""
        lease = grant_to_scheduler(self._sizes, held)
        until = self._clock.monotonic() + wait_for_scheduler(self._sizes, lease)
        self._granted_until = max(self._granted_until, until)
        return lease

    def _take_credit(self, credit: pb.Credit) -> None:
        self.credit.limit([(Cell(cell.function, cell.priority), cell.limit) for cell in credit.cells], credit.total)
        if credit.closed_changed:
            self.credit.close(Closed(*(getattr(each, name) for name in Closed._fields)) for each in credit.closed)
        for message in credit.functions:
            spec = self.functions[message.name] = function_from_wire(message)
            (self.estimating.add if spec.units else self.estimating.discard)(spec.name)
