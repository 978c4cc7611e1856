"""A worker's session with one scheduler: its frames become leases and assignments, and outcomes go back in frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Protocol

from ..foundation.clock import Clock
from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, Ended, Flight, Outcomes
from ..wire.convert import KindReader, read_items, write_outcomes
from ..wire.v1 import scheduler_pb2 as pb
from .frames import REF_MASK, SESSION_BITS
from .rules.leases import Leases

#: Bytes of return values in one frame; a frame carries at least one.
FRAME_BYTES = 2 << 20


class AttachingWorker(Protocol):
    """The calls that an attachment makes to its worker. An item's key is session << 56 | ref."""

    def new_session(self) -> int: ...

    def pools(self) -> list[pb.Pool]: ...

    def assigned(self, session: int, flight: Flight, fences: list[int], pool: str) -> None: ...

    def renewed(self) -> None: ...

    def cancelled(self, keys: set[int]) -> None: ...

    def session_lost(self, session: int) -> set[int]: ...

    def carried(self, keys: set[int]) -> list[pb.Carried]: ...


class Attachment:
    """The worker's endpoint of a session. Invariant: `session` is the number of the present one. Outcomes of items of
    earlier sessions are not reported, since the scheduler that knew them waits for their leases to end; only their
    presence is."""

    def __init__(self, owner: AttachingWorker, leases: Leases, clock: Clock) -> None:
        self._owner = owner
        self._leases = leases
        self._clock = clock
        self.notify: Callable[[], None] = lambda: None  # wakes the writer; the worker sets it once there is one
        self.session = owner.new_session()
        self.connected = False
        self.draining = False
        self._begun = False  # the present session has been welcomed once
        self._hello_at = 0.0
        self._kinds = KindReader()
        self._last_flight = 0
        self._succeeded: list[int] = []
        self._ended: dict[int, Ended] = {}
        self._notes: dict[int, str] = {}
        self._waits: dict[int, bool] = {}  # who waits for other work, and who goes on
        self._wants_lease = False
        self._pools_changed = False
        self._said_draining = False
        self._carried: set[int] = set()  # keys of earlier sessions that are not over
        self._carried_changed = False

    # -- calls of the worker -----------------------------------------------------------------------------------------

    def hello(self) -> None:
        """Notes the moment before a hello is sent: leases count from then."""
        self._hello_at = self._clock.monotonic()

    def ended(self, succeeded: list[int], ended: dict[int, Ended]) -> None:
        """Queues outcomes of items of this session for the next frame; keys as refs."""
        self._succeeded += succeeded
        self._ended.update(ended)
        self.notify()

    def note(self, ref: int, note: str) -> None:
        """Queues a progress note of an item; only the latest counts."""
        self._notes[ref] = note
        self.notify()

    def wait(self, ref: int, waits: bool) -> None:
        """Queues the news that an item waits for other work from now on, or goes on."""
        self._waits[ref] = waits
        self.notify()

    def over(self, keys: Iterable[int]) -> None:
        """Forgets carried items that are over, of whichever earlier session."""
        if not self._carried.isdisjoint(keys := set(keys)):
            self._carried -= keys
            self._carried_changed = True
            self.notify()

    def carries(self) -> set[int]:
        """Keys of items of earlier sessions that are not over."""
        return set(self._carried)

    def ask_lease(self) -> None:
        """Asks for renewal of the leases with the next frame; called at each heartbeat."""
        self._wants_lease = True
        self.notify()

    def pools_changed(self) -> None:
        """Sends the limits of the pools with the next frame, since they changed."""
        self._pools_changed = True
        self.notify()

    def drain(self) -> None:
        """Tells the scheduler to assign nothing more; a later assignment is handed back."""
        self.draining = True
        self.notify()

    @property
    def silent(self) -> bool:
        """Whether no outcome waits to be sent."""
        return not (self._succeeded or self._ended)

    # -- the endpoint ------------------------------------------------------------------------------------------------

    def opened(self, resumed: bool) -> None:
        """Takes note of a connection. Renewals go first, so that leases that still can be saved are (L3)."""
        if not self._begun:
            self._begun = True
            self._leases.hello(self.session, self._hello_at)
        self.connected = True
        self._wants_lease = True
        if resumed:
            self._pools_changed = True

    def broken(self) -> None:
        """Takes note that the connection is gone; leases run on, and the dialer tries again."""
        self.connected = False

    def lost(self) -> None:
        """Stops all items of a session that the scheduler no longer knows, and begins a new one."""
        old, self.session = self.session, self._owner.new_session()
        self._leases.lost(old)
        self._kinds = KindReader()
        self._last_flight = 0
        self._succeeded, self._ended, self._notes, self._waits = [], {}, {}, {}
        self._said_draining = False
        self._begun = False
        self._carried |= self._owner.session_lost(old)
        self._carried_changed = True

    def compose(self) -> pb.WorkerFrame | None:
        """All that is pending, in one frame; None: nothing is."""
        draining = self.draining and not self._said_draining
        ends = self._succeeded or self._ended
        changed = self._pools_changed or self._carried_changed
        if not (ends or self._wants_lease or changed or self._notes or self._waits or draining):
            return None
        frame = pb.WorkerFrame()
        if ends:
            some = self._some_ended()
            write_outcomes(frame.outcomes, Outcomes(self._succeeded, some))
            self._succeeded = []  # not before they are written
            for ref in some:
                del self._ended[ref]
        if self._wants_lease:
            self._wants_lease = False
            frame.lease_request.number = self._leases.request(self.session, self._clock.monotonic())
        if self._pools_changed:
            self._pools_changed = False
            frame.pools.extend(
                pb.Pool(name=pool.name, slots=pool.slots, limit=pool.limit, failure=pool.failure)
                for pool in self._pools()
            )
        if self._notes:
            frame.progress.extend(pb.Progress(ref=ref, note=note) for ref, note in self._notes.items())
            self._notes = {}
        if self._waits:
            frame.waits.extend(ref for ref, waits in self._waits.items() if waits)
            frame.goes_on.extend(ref for ref, waits in self._waits.items() if not waits)
            self._waits = {}
        if self._carried_changed:
            self._carried_changed, frame.carried_changed = False, True
            frame.carried.extend(self._owner.carried(self._carried))
        if draining:
            self._said_draining = frame.draining = True
        return frame

    def _pools(self) -> list[pb.Pool]:
        return self._owner.pools()

    def _some_ended(self) -> dict[int, Ended]:
        """The ends that fit into one frame, one at least."""
        size = 0
        for count, end in enumerate(self._ended.values()):
            size += len(end.reason) + len(end.result or b"")
            if size > FRAME_BYTES and count:
                return dict(islice(self._ended.items(), count))
        return dict(self._ended)

    def accept(self, frame: Any) -> None:
        """Handles a frame. Grants come first: an assignment in the same frame may rest on them."""
        now = self._clock.monotonic()
        base = self.session << SESSION_BITS
        if frame.HasField("grants"):
            grants = frame.grants
            leases = {group.group: group.lease for group in grants.groups}
            self._leases.granted(self.session, grants.request, leases, [base | ref for ref in grants.revoked])
            self._owner.renewed()
        for assign in frame.assigns:
            self._assign(assign, now)
        if frame.cancel:
            self._owner.cancelled({base | ref for ref in frame.cancel})

    def _assign(self, assign: pb.Assign, now: float) -> None:
        flight = read_items(assign.items, self._kinds, assign.flight, 0)  # read even if refused: it may name kinds
        if assign.flight <= self._last_flight:
            return  # seen before
        self._last_flight = assign.flight
        number = self.session << SESSION_BITS - INDEX_BITS | assign.flight
        deadline = self._leases.assigned(self.session, assign.group, number, assign.lease_request, assign.lease, now)
        if deadline is None:
            self._refuse(flight, "its lease was over when it arrived")
        elif self.draining:
            self._refuse(flight, "handed back: this worker is draining")
        else:
            self._owner.assigned(self.session, flight, list(assign.fence), assign.pool)

    def _refuse(self, flight: Flight, reason: str) -> None:
        first = flight.number << INDEX_BITS
        self.ended([], {first + index: Ended(Outcome.HELD, reason) for index in range(len(flight))})


def by_session(succeeded: list[int], ended: dict[int, Ended]) -> dict[int, tuple[list[int], dict[int, Ended]]]:
    """Ends by session, with refs for keys. Nearly always there is one session."""
    sessions = {key >> SESSION_BITS for key in succeeded} | {key >> SESSION_BITS for key in ended}
    return {
        session: (
            [key & REF_MASK for key in succeeded if key >> SESSION_BITS == session]
            if len(sessions) > 1
            else [key & REF_MASK for key in succeeded],
            {key & REF_MASK: end for key, end in ended.items() if key >> SESSION_BITS == session},
        )
        for session in sessions
    }
