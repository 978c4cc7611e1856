"""What a client says to a gateway, and what it makes of the answers: the one core under `Client` and `AsyncClient`.

Each operation is a generator that yields `Ask` (a call to make) and `Pause` (seconds to wait), is sent the answer or
thrown the error, and returns its result. The faces only make calls and wait, one blocking and one awaiting, so the
rules below have no twins, and are tested without a network.

A call that was not answered is made again until `patience` seconds have passed, to the next gateway where there are
several. It may have been heard the first time, so every workload carries a token (its dedupe key, else a submission id)
by which the queue knows it again, whichever gateway brings it.
"""

from __future__ import annotations

import math
import random
import secrets
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from .call import Call
from .model.errors import InvalidRequest, Overloaded, PartlySubmitted, StoreFull, Unavailable, WorkloadFailed
from .model.search import MOST_FOUND, Search
from .model.status import SUCCESS, WorkloadStatus
from .wire.gateway_messages import Accepted, accepted, new_workload, status_from_wire
from .wire.search_messages import search_to_wire
from .wire.v1 import gateway_pb2 as pb

T = TypeVar("T")

#: A chunk of `submit_many` holds at most so many workloads and (beside its last one) payload bytes.
CHUNK_ITEMS = 1000
CHUNK_BYTES = 1 << 20
#: Pauses before a call is made again: doubling, half of each random.
FIRST_PAUSE = 0.05
LAST_PAUSE = 1.0
#: One call that waits for a result asks for at most so many seconds, and gets so many more to answer.
LONGEST_WAIT = 30.0
ANSWER_MARGIN = 10.0
#: Of several gateways one gets half of the time that is left to answer, and at least so much: a gateway whose store is
#: away takes two seconds to notice.
LEAST_TRY = 3.0
#: What the ids of spooled workloads begin with, and what a gateway says of an id that it does not know.
SPOOL_ID = "spool-"
UNKNOWN = "unknown"


class Ask(NamedTuple):
    """Make this call to the gateway of this place; give up on its answer after `timeout` seconds. `meanwhile` is called
    once the call is on its way."""

    method: str
    request: Any
    timeout: float
    place: int = 0
    meanwhile: Callable[[], None] | None = None


class Pause(NamedTuple):
    """Wait so many seconds."""

    seconds: float


Steps = Generator[Ask | Pause, Any, T]


class Conversation:
    """The operations of one client of these gateways, which share a store. `patience` (seconds) bounds how long a call
    is tried; `now` is monotonic. Calls go to the gateway that answered last; the first one is any of them, so that
    many clients spread."""

    def __init__(self, addresses: Sequence[str], patience: float, now: Callable[[], float]) -> None:
        self.addresses = addresses
        self._patience = patience
        self._now = now
        self._place = random.randrange(len(addresses)) if len(addresses) > 1 else 0

    def submit(self, call: Call) -> Steps[Accepted]:
        """Submits one call."""
        return (yield from self.together([call]))[0]

    def together(self, calls: Sequence[Call]) -> Steps[list[Accepted]]:
        """Submits a few calls that are stored together, or not at all."""
        workloads = [_message(call, uuid.uuid4().hex) for call in calls]
        return accepted((yield from self.answered("Submit", pb.SubmitRequest(workloads=workloads))))

    def submit_many(self, calls: Iterable[Call], resend: bool, made: Callable[[Call, Accepted], T]) -> Steps[list[T]]:
        """Submits calls in chunks, each stored whole or not at all; returns what `made` makes of each."""
        done: list[T] = []
        ahead = _Ahead(_chunks(calls), resend)
        told: tuple[list[Call], list[Accepted]] | None = None  # of the chunk before

        def tell() -> None:
            nonlocal told
            if told is not None:
                done.extend(map(made, *told))
                told = None

        def meanwhile() -> None:
            """While one chunk is stored the next is made ready and the one before is told: both take a processor."""
            ahead.prepare()
            tell()

        while True:
            try:
                if (one := ahead.next()) is None:
                    tell()
                    return done
                chunk, request = one
                reply = yield from self.answered("Submit", request, again=resend, meanwhile=meanwhile)
            except Exception as error:
                tell()
                if not done:
                    raise
                raise PartlySubmitted(
                    f"the first {len(done)} workloads were accepted, none is known to be of those after: {error}", done
                ) from error
            tell()
            told = chunk, accepted(reply)

    def status(self, ids: list[str], tries: bool = False) -> Steps[list[WorkloadStatus | None]]:
        """The status of each id, None for unknown ones; with `tries` also how its attempts went."""
        found: list[WorkloadStatus | None] = []
        for start in range(0, len(ids), CHUNK_ITEMS):
            some = ids[start : start + CHUNK_ITEMS]
            reply = yield from self.answered("Status", pb.StatusRequest(ids=some, tries=tries))
            statuses = [status_from_wire(message) for message in reply.statuses]
            strangers = [at for at, id in enumerate(some) if statuses[at] is None and id.startswith(SPOOL_ID)]
            if strangers:
                others = yield from self._elsewhere(
                    "Status", pb.StatusRequest(ids=[some[at] for at in strangers], tries=tries)
                )
                for other in others:
                    for at, message in zip(strangers, other.statuses, strict=True):
                        statuses[at] = statuses[at] or status_from_wire(message)
            found += statuses
        return found

    def status_of(self, id: str) -> Steps[WorkloadStatus]:
        """The status of one id. Raises InvalidRequest when it is unknown."""
        [status] = yield from self.status([id], tries=True)
        return _known(id, status)

    def find(self, search: Search) -> Steps[list[WorkloadStatus]]:
        """Up to `search.limit` workloads that fit, the newest first."""
        found: list[WorkloadStatus] = []
        while True:
            left = search.limit - len(found)
            request = search_to_wire(replace(search, limit=min(left, MOST_FOUND)))
            reply = yield from self.answered("Find", request)
            found += [status for message in reply.statuses if (status := status_from_wire(message)) is not None]
            if not reply.after or len(found) >= search.limit:
                return found
            search = replace(search, after=reply.after)

    def result(self, id: str, timeout: float | None) -> Steps[Any]:
        """Waits until a workload has ended and returns its value. Raises WorkloadFailed, TimeoutError."""
        end = None if timeout is None else self._now() + timeout
        strange = 0  # gateways that do not know it
        while True:
            left = LONGEST_WAIT if end is None else max(0.0, end - self._now())
            wait = min(LONGEST_WAIT, left)
            request = pb.ResultRequest(id=id, wait=wait)
            reply = yield from self.answered("Result", request, extra=wait + ANSWER_MARGIN)
            if not reply.status.known and id.startswith(SPOOL_ID) and strange + 1 < len(self.addresses):
                strange += 1
                self._place = (self._place + 1) % len(self.addresses)
                continue
            status = _known(id, status_from_wire(reply.status))
            if status.ended:
                return _value(status, reply)
            if end is not None and self._now() >= end:
                raise TimeoutError(
                    f"{status.function} {id} has not ended within {timeout:g} seconds: it is {status.state}"
                    f"{f' after {status.attempts} failed attempts ({status.reason})' if status.attempts else ''}. "
                    "It goes on; ask again later, or cancel it"
                )

    def cancel(self, ids: list[str], who: str) -> Steps[list[str]]:
        """Asks for the end of workloads: of each, `cancelled`, `requested`, `ended` or `unknown`."""
        found: list[str] = []
        for start in range(0, len(ids), CHUNK_ITEMS):
            request = pb.CancelRequest(ids=ids[start : start + CHUNK_ITEMS], who=who)
            outcomes = list((yield from self.answered("Cancel", request)).outcomes)
            strangers = [at for at, id in enumerate(request.ids) if outcomes[at] == UNKNOWN and id.startswith(SPOOL_ID)]
            if strangers:
                request = pb.CancelRequest(ids=[request.ids[at] for at in strangers], who=who)
                for other in (yield from self._elsewhere("Cancel", request)):
                    for at, outcome in zip(strangers, other.outcomes, strict=True):
                        outcomes[at] = outcome if outcomes[at] == UNKNOWN else outcomes[at]
            found += outcomes
        return found

    def _elsewhere(self, method: str, request: Any) -> Steps[list[Any]]:
        """What the other gateways say, those that answer: only the one that spooled a workload knows its id."""
        replies: list[Any] = []
        for step in range(1, len(self.addresses)):
            place = (self._place + step) % len(self.addresses)
            try:
                replies.append((yield Ask(method, request, min(self._patience, LEAST_TRY), place)))
            except Unavailable:
                continue
        return replies

    def answered(
        self,
        method: str,
        request: Any,
        extra: float = 0.0,
        again: bool = True,
        meanwhile: Callable[[], None] | None = None,
    ) -> Steps[Any]:
        """One call, made again while no gateway can be reached or they ask to come later, as far as patience goes."""
        end = self._now() + self._patience
        pause, places = FIRST_PAUSE, len(self.addresses)
        asked, soonest = 0, math.inf  # of this round: how many gateways, and the shortest wait that one asked for
        place = self._place
        while True:
            left = max(FIRST_PAUSE, end - self._now())
            timeout = left if places == 1 else min(left, max(left / 2, LEAST_TRY))
            try:
                return (yield Ask(method, request, timeout + extra, place, meanwhile))
            except StoreFull:
                raise
            except Overloaded as error:
                problem: Unavailable = error
                soonest = min(soonest, error.retry_after)
            except Unavailable as error:
                problem = error
                if not again:
                    raise Unavailable(self._unreachable(error)) from None
            asked += 1
            self._place = place = (place + 1) % places
            if asked < places and self._now() < end:
                continue
            if soonest < math.inf:
                wait = soonest * random.uniform(1.0, 1.5)
            else:
                wait = pause * random.uniform(0.5, 1.0)
                pause = min(pause * 2, LAST_PAUSE)
            if self._now() + wait >= end:
                if isinstance(problem, Overloaded):
                    raise problem
                raise Unavailable(self._unreachable(problem)) from None
            asked, soonest = 0, math.inf
            yield Pause(wait)

    def _unreachable(self, error: Unavailable) -> str:
        reason = str(error).removesuffix("; is it running?")
        return (
            f"no answer from {self._name()} within {self._patience:g} seconds ({reason}). "
            "Is it running? Start it with `tailrace up`, or give its address: the gateway argument or TAILRACE_GATEWAY"
        )

    def _name(self) -> str:
        if len(self.addresses) == 1:
            return f"the gateway at {self.addresses[0]}"
        return f"the gateways at {', '.join(self.addresses)}"


def _message(call: Call, token: str) -> pb.NewWorkload:
    message = new_workload(
        call.function,
        call.payload,
        priority=call.priority,
        collection=call.collection,
        tenant=call.tenant,
        key=call.key,
        headers=call.headers,
        delay=call.delay,
        at=call.at,
        dedupe_key=call.dedupe_key,
        expires_after=call.expires_after,
    )
    if token and not call.dedupe_key:
        message.submission_id = token
    return message


class _Ahead:
    """The requests of chunks, one made ready before it is asked for. What fails in that is raised when it is."""

    def __init__(self, chunks: Iterator[list[Call]], resend: bool) -> None:
        self._chunks = chunks
        self._resend = resend
        self._ready: list[tuple[list[Call], pb.SubmitRequest] | Exception | None] = []

    def prepare(self) -> None:
        """Harmless when one is ready."""
        if self._ready:
            return
        try:
            chunk = next(self._chunks, None)
            self._ready.append(None if chunk is None else (chunk, self._request(chunk)))
        except Exception as error:
            self._ready.append(error)

    def next(self) -> tuple[list[Call], pb.SubmitRequest] | None:
        """The next one; None: there is none."""
        self.prepare()
        one = self._ready.pop()
        if isinstance(one, Exception):
            raise one
        return one

    def _request(self, chunk: list[Call]) -> pb.SubmitRequest:
        token = secrets.token_hex(13) if self._resend else ""
        return pb.SubmitRequest(
            workloads=[
                _message(call, f"{token}{index:06x}" if self._resend else "") for index, call in enumerate(chunk)
            ]
        )


def _chunks(calls: Iterable[Call]) -> Iterator[list[Call]]:
    chunk: list[Call] = []
    size = 0
    for call in calls:
        if not isinstance(call, Call):
            raise InvalidRequest(f"submit_many takes tailrace.Call(function, …) objects, not {type(call).__name__}")
        if chunk and (len(chunk) == CHUNK_ITEMS or size + len(call.payload) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(call)
        size += len(call.payload)
    if chunk:
        yield chunk


def _known(id: str, status: WorkloadStatus | None) -> WorkloadStatus:
    if status is None:
        raise InvalidRequest(f"no workload {id!r} is known: it was never submitted here, or ended long ago")
    return status


def _value(status: WorkloadStatus, reply: pb.ResultReply) -> Any:
    """The return value, or WorkloadFailed."""
    if status.state == SUCCESS:
        if not reply.has_result:
            return None
        import pydantic_core

        return pydantic_core.from_json(reply.result)
    tries = f" after {status.attempts} failed attempts" if status.attempts > 1 else ""
    raise WorkloadFailed(
        f"{status.function} {status.id} ended as {status.state}{tries}: {status.reason or 'no reason was given'}",
        id=status.id,
        outcome=status.state,
        reason=status.reason,
        attempts=status.attempts,
    )
