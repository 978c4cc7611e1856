"""Execute: one workload for one open call. The caller holds the lease, which is the call itself: giving it up cancels.
To the core all calls are one session whose flights hold one item each and never lapse by themselves."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import Counter
from collections.abc import Callable

from ..foundation.clock import Clock
from ..model.errors import InvalidPayload, InvalidRequest, Overloaded, UnknownFunction
from ..model.priority import Priority
from ..model.shared_room import SharedRoom
from ..model.workload import Ended, Extra, Flight, Kind, ref
from ..wire.convert import headers_from_wire
from ..wire.v1 import scheduler_pb2 as pb
from .core import Core
from .endpoints import take_outcomes
from .misfits import Misfits

#: Names in a call are at most this long.
NAME_LENGTH = 200
#: Versions of a function that are tried at most, one after the other, for one call.
TRIES = 16
#: The room of the calls that are under way, which tenants share.
ROOM = SharedRoom("calls that one scheduler has under way (`calls`)", "try again later", 1.0)


class Calls:
    """The calls that are open. Invariants: `_waiting` has a future for every call that is open, `_held` how many each
    tenant has of them."""

    def __init__(self, core: Core, clock: Clock, turn: Callable[[], None]) -> None:
        self._core = core
        self._clock = clock
        self._turn = turn
        self.session = core.attach_tailer("", "execute", clock.monotonic(), patient=True)
        self._waiting: dict[int, asyncio.Future[Ended]] = {}
        self._held: Counter[str] = Counter()
        self._shared = False  # a tenant called
        self._number = 0

    async def run(self, request: pb.ExecuteRequest) -> pb.ExecuteReply:
        """Waits for the workload's end. Raises UnknownFunction, InvalidRequest, InvalidPayload, Overloaded."""
        kind = self._kind(request)
        if len(request.payload) > self._core.config.payload_bytes:
            raise InvalidPayload(
                f"the payload for {kind.function} has {len(request.payload)} bytes; at most "
                f"{self._core.config.payload_bytes} are taken: put it somewhere and send its address"
            )
        if len(self._waiting) >= self._core.config.calls:
            raise Overloaded(
                f"this scheduler has {len(self._waiting)} calls under way, its bound (`calls`): try again later"
            )
        self._shared = self._shared or bool(kind.tenant)
        if self._shared:
            ROOM.check(self._held, {kind.tenant: 1}, len(self._waiting), self._core.config.calls)
        id = request.id or uuid.uuid4().hex
        self._held[kind.tenant] += 1
        try:
            for _ in range(TRIES):  # a version of the function that does not take the payload hands it to the next
                ended = await self._try(kind, id, request)
                if not Misfits.came_back(ended):
                    break
        finally:
            self._held[kind.tenant] -= 1
            if not self._held[kind.tenant]:
                del self._held[kind.tenant]
        return pb.ExecuteReply(outcome=ended.outcome, result=ended.result, reason=ended.reason, after=ended.after)

    async def _try(self, kind: Kind, id: str, request: pb.ExecuteRequest) -> Ended:
        """Hands the workload out once, under a fence of its own."""
        self._number += 1
        headers = headers_from_wire(request.headers)
        flight = Flight(
            number=self._number,
            fence=self._number,
            kinds=[kind],
            ids=[id],
            payloads=[request.payload],
            attempts=[request.attempt or 1],
            extras={0: Extra(headers=headers)} if headers else {},
            wants_result=True,
        )
        number = ref(flight.number, 0)
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._core.push(self.session, flight, 0, math.inf, self._clock.monotonic())
            self._turn()
            return await future
        finally:
            del self._waiting[number]
            self._core.abandon(self.session, flight.number)
            self._turn()

    def deliver(self) -> None:
        """Hands outcomes to the callers that wait for them."""
        while self.session.succeeded or self.session.ended:
            outcomes = take_outcomes(self.session)
            for number in outcomes.succeeded:
                self._end(number, Ended(1))
            for number, ended in outcomes.ended.items():
                self._end(number, ended)

    def _end(self, number: int, ended: Ended) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(ended)

    def _kind(self, request: pb.ExecuteRequest) -> Kind:
        name = request.function
        spec = self._core.roster.specs.get(name)
        if spec is None:
            raise UnknownFunction(
                f"no function named {name!r} is registered and no connected worker can run it: check the name, or "
                "start a worker whose module declares it"
            )
        for what, value in (("collection", request.collection), ("tenant", request.tenant), ("id", request.id)):
            if len(value) > NAME_LENGTH:
                raise InvalidRequest(f"the {what} has {len(value)} characters; at most {NAME_LENGTH} are taken")
        priority = Priority.parse(request.priority) if request.HasField("priority") else spec.priority
        return Kind(name, int(priority), request.collection, request.tenant)
