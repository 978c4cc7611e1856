"""Chunks of `submit_many`: calls of bounded size, each made ready while the one before is stored.

Workloads of a chunk mostly differ in their payloads alone. Then what they have in common is said once for each *form*
of them, and the payloads are a column: a message for each costs client and gateway four times as much.
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
#: A chunk of more forms goes workload by workload.
FORMS = 64
#: Hexadecimal digits of a call's token; those of each workload's place in it follow.
TOKEN_BYTES = 13


class Ahead:
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
            self._ready.append(None if chunk is None else (chunk, request(chunk, self._resend)))
        except Exception as error:
            self._ready.append(error)

    def next(self) -> tuple[list[Call], pb.SubmitRequest] | None:
        """The next one; None: there is none."""
        self.prepare()
        one = self._ready.pop()
        if isinstance(one, Exception):
            raise one
        return one


def chunks(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """Calls as they go together, in order. Raises InvalidRequest for what is none."""
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
    """The chunk in columns; None: too much of it is said of single ones."""
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
