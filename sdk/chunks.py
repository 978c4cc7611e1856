"""Chunks of `submit_many`: calls of bounded size, each made ready while the one before is stored.

Workloads of a chunk mostly differ in their payloads alone. Then the fields that they share are sent once for each
*form* of workload, and the payloads as a column: a message for each costs client and gateway four times as much.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

from ..model.errors import InvalidRequest
from ..wire.gateway_messages import new_workload
from ..wire.v1 import gateway_pb2 as pb
from .call import Call

#: A chunk holds at most so many workloads and (beside its last one) payload bytes.
CHUNK_ITEMS = 1000
CHUNK_BYTES = 1 << 20
#: Most forms of a chunk; one of more is sent workload by workload.
FORMS = 64
#: Random bytes of a call's token; a workload's has the digits of its place in the call behind them.
TOKEN_BYTES = 13


class Ahead:
    """The requests of chunks, each prepared before it is needed. An error of that is raised by `next`."""

    def __init__(self, chunks: Iterator[list[Call]], resend: bool) -> None:
        self._chunks = chunks
        self._resend = resend
        self._ready: list[tuple[list[Call], pb.SubmitRequest] | Exception | None] = []

    def prepare(self) -> None:
        """Prepares the next request. Harmless when one is ready."""
        if self._ready:
            return
        try:
            chunk = next(self._chunks, None)
            self._ready.append(None if chunk is None else (chunk, request(chunk, self._resend)))
        except Exception as error:
            self._ready.append(error)

    def next(self) -> tuple[list[Call], pb.SubmitRequest] | None:
        """The next chunk with its request; None: there are no more."""
        self.prepare()
        one = self._ready.pop()
        if isinstance(one, Exception):
            raise one
        return one


def chunks(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """Yields chunks of calls, in order. Raises InvalidRequest for anything but a Call."""
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


def request(chunk: list[Call], resend: bool) -> pb.SubmitRequest:
    """A chunk as a request; with `resend` under a token by which it is known when it comes again."""
    token = secrets.token_hex(TOKEN_BYTES) if resend else ""
    if (alike := _alike(chunk, token)) is not None:
        return pb.SubmitRequest(alike=alike)
    return pb.SubmitRequest(
        workloads=[message(call, f"{token}{index:06x}" if resend else "") for index, call in enumerate(chunk)]
    )


def message(call: Call, token: str) -> pb.NewWorkload:
    """A call as a message of its own, known again by its token or its dedupe key."""
    made = _form(call, call.payload, call.key, call.dedupe_key)
    if token and not call.dedupe_key:
        made.submission_id = token
    return made


def _alike(chunk: list[Call], token: str) -> pb.Alike | None:
    """The chunk in columns; None: keys, or more than FORMS forms, set its workloads apart."""
    if len(chunk) == 1:
        return None
    forms: dict[tuple[object, ...], Call] = {}
    places: dict[tuple[object, ...], int] = {}
    form_of: list[int] = []
    for call in chunk:
        if call.key or call.dedupe_key:
            return None
        form = (
            *(call.function, call.priority, call.collection, call.tenant),
            *(call.delay, call.at, call.expires_after, call.headers, call.on_done),
        )
        if (place := places.get(form)) is None:
            if len(forms) == FORMS:
                return None
            forms[form] = call
            place = places[form] = len(places)
        form_of.append(place)
    return pb.Alike(
        forms=[_form(call) for call in forms.values()],
        payloads=[call.payload for call in chunk],
        form_of=form_of if len(forms) > 1 else (),
        token=token,
    )


def _form(call: Call, payload: bytes = b"", key: str = "", dedupe_key: str = "") -> pb.NewWorkload:
    return new_workload(
        call.function,
        payload,
        priority=call.priority,
        collection=call.collection,
        tenant=call.tenant,
        key=key,
        headers=call.headers,
        delay=call.delay,
        at=call.at,
        dedupe_key=dedupe_key,
        expires_after=call.expires_after,
        on_done=call.on_done,
    )
