"""What a client says to a gateway, and what it makes of the answers: the one core under `Client` and `AsyncClient`.

Each operation is a generator that yields `Ask` (a call to make) and `Pause` (seconds to wait), is sent the answer or
thrown the error, and returns its result. The faces only make calls and wait, one blocking and one awaiting, so the
rules below have no twins, and are tested without a network.

A call that was not answered is made again until `patience` seconds have passed. It may have been heard the first time,
so every workload carries a token (its dedupe key, else a submission id) by which the queue knows it again.
"""

from __future__ import annotations

import random
import secrets
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from .call import Call
from .model.errors import InvalidRequest, Overloaded, PartlySubmitted, StoreFull, Unavailable, WorkloadFailed
from .model.status import SUCCESS, WorkloadStatus
from .wire.gateway_messages import Accepted, accepted, new_workload, status_from_wire
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


class Ask(NamedTuple):
    """Make this call; give up on its answer after `timeout` seconds."""

    method: str
    request: Any
    timeout: float


class Pause(NamedTuple):
    """Wait so many seconds."""

    seconds: float


Steps = Generator[Ask | Pause, Any, T]


class Conversation:
    """The operations of one client. `patience` (seconds) bounds how long a call is tried; `now` is monotonic."""

    def __init__(self, address: str, patience: float, now: Callable[[], float]) -> None:
        self.address = address
        self._patience = patience
        self._now = now

    def submit(self, call: Call) -> Steps[Accepted]:
        """Submits one call."""
        reply = yield from self._answered("Submit", pb.SubmitRequest(workloads=[_message(call, uuid.uuid4().hex)]))
        return accepted(reply)[0]

    def submit_many(self, calls: Iterable[Call], resend: bool, made: Callable[[Call, Accepted], T]) -> Steps[list[T]]:
        """Submits calls in chunks, each stored whole or not at all; returns what `made` makes of each."""
        done: list[T] = []
        chunks = _chunks(calls)
        while True:
            try:
                chunk = next(chunks, None)
                if chunk is None:
                    return done
                token = secrets.token_hex(13) if resend else ""
                request = pb.SubmitRequest(
                    workloads=[
                        _message(call, f"{token}{index:06x}" if resend else "") for index, call in enumerate(chunk)
                    ]
                )
                reply = yield from self._answered("Submit", request, again=resend)
            except Exception as error:
                if not done:
                    raise
                raise PartlySubmitted(
                    f"the first {len(done)} workloads were accepted, none is known to be of those after: {error}", done
                ) from error
            done += [made(call, answer) for call, answer in zip(chunk, accepted(reply), strict=True)]

    def status(self, ids: list[str]) -> Steps[list[WorkloadStatus | None]]:
        """The status of each id, None for unknown ones."""
        found: list[WorkloadStatus | None] = []
        for start in range(0, len(ids), CHUNK_ITEMS):
            reply = yield from self._answered("Status", pb.StatusRequest(ids=ids[start : start + CHUNK_ITEMS]))
            found += [status_from_wire(message) for message in reply.statuses]
        return found

    def status_of(self, id: str) -> Steps[WorkloadStatus]:
        """The status of one id. Raises InvalidRequest when it is unknown."""
        [status] = yield from self.status([id])
        return _known(id, status)

    def result(self, id: str, timeout: float | None) -> Steps[Any]:
        """Waits until a workload has ended and returns its value. Raises WorkloadFailed, TimeoutError."""
        end = None if timeout is None else self._now() + timeout
        while True:
            left = LONGEST_WAIT if end is None else max(0.0, end - self._now())
            wait = min(LONGEST_WAIT, left)
            request = pb.ResultRequest(id=id, wait=wait)
            reply = yield from self._answered("Result", request, extra=wait + ANSWER_MARGIN)
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
            found += (yield from self._answered("Cancel", request)).outcomes
        return found

    def _answered(self, method: str, request: Any, extra: float = 0.0, again: bool = True) -> Steps[Any]:
        """One call, made again while the gateway cannot be reached or asks to come later, as far as patience goes."""
        end = self._now() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                return (yield Ask(method, request, max(FIRST_PAUSE, end - self._now()) + extra))
            except StoreFull:
                raise
            except Overloaded as error:
                wait = error.retry_after * random.uniform(1.0, 1.5)
                if self._now() + wait >= end:
                    raise
            except Unavailable as error:
                wait = pause * random.uniform(0.5, 1.0)
                if not again or self._now() + wait >= end:
                    raise Unavailable(self._unreachable(error)) from None
                pause = min(pause * 2, LAST_PAUSE)
            yield Pause(wait)

    def _unreachable(self, error: Unavailable) -> str:
        reason = str(error).removesuffix("; is it running?")
        return (
            f"no answer from the gateway at {self.address} within {self._patience:g} seconds ({reason}). "
            "Is it running? Start it with `tailrace up`, or give its address: the gateway argument or TAILRACE_GATEWAY"
        )


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
