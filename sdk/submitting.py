"""Submitting: what a client asks of a gateway, as steps of a conversation; `talk` is the client's own.

It may be heard although no answer came, so every workload carries a token (its dedupe key, else a submission id) by
which the queue knows it again, whichever gateway brings it.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from .call import Call
from .conversation import Conversation, Steps
from .model.errors import InvalidRequest, PartlySubmitted
from .wire.gateway_messages import Accepted, accepted, new_workload
from .wire.v1 import gateway_pb2 as pb

T = TypeVar("T")

#: A chunk of `submit_many` holds at most so many workloads and (beside its last one) payload bytes.
CHUNK_ITEMS = 1000
CHUNK_BYTES = 1 << 20


def submit(talk: Conversation, call: Call) -> Steps[Accepted]:
    """Submits one call."""
    return (yield from together(talk, [call]))[0]


def together(talk: Conversation, calls: Sequence[Call]) -> Steps[list[Accepted]]:
    """Submits a few calls that are stored together, or not at all."""
    workloads = [_message(call, uuid.uuid4().hex) for call in calls]
    return accepted((yield from talk.answered("Submit", pb.SubmitRequest(workloads=workloads))))


def submit_many(
    talk: Conversation, calls: Iterable[Call], resend: bool, made: Callable[[Call, Accepted], T]
) -> Steps[list[T]]:
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
            reply = yield from talk.answered("Submit", request, again=resend, meanwhile=meanwhile)
        except Exception as error:
            tell()
            if not done:
                raise
            raise PartlySubmitted(
                f"the first {len(done)} workloads were accepted, none is known to be of those after: {error}", done
            ) from error
        tell()
        told = chunk, accepted(reply)


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
