"""One row of an outbox: a workload that an application's transaction leaves there, checked before it is written.

A workload that a gateway would refuse is refused here, in the caller's own call: a committed row could only be set
aside.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

import msgspec

from ...model.errors import InvalidPayload, InvalidRequest
from ...model.name import EXPECTED, NAME_LENGTH, is_name
from ...model.reference import BY_REFERENCE
from ...model.units import duration_text
from ...sdk.call import Call
from ..queue.admission import SUBMISSION_PREFIX

#: The default bounds of a gateway: a transaction does not ask a gateway.
MAX_PAYLOAD = 1 << 20
MAX_DELAY = 30 * 86400.0
MAX_HEADERS = 8 << 10

_encode = msgspec.json.Encoder().encode


class NewRow(NamedTuple):
    """The values of a row, in the order of an INSERT. `token` is the row's identity: the row is submitted under it, so
    that a row that is carried twice is one workload. `headers` is a JSON array of pairs, or empty. `delay` and
    `expires_after` (seconds; -1: never) count from the time at which the database takes the row. `at` (wall clock
    seconds; 0: none) is a time instead of a delay."""

    token: str
    function: str
    payload: bytes
    priority: int
    collection: str
    tenant: str
    key: str
    dedupe_key: str
    headers: str
    delay: float
    at: float
    expires_after: float


def new_row(call: Call, priority: int, now: float) -> NewRow:
    """The row of a call. Raises InvalidPayload or InvalidRequest for a call that no queue would take; `now` is wall
    clock seconds."""
    if len(call.payload) > MAX_PAYLOAD:
        raise InvalidPayload(
            f"{call.function}: the payload has {len(call.payload)} bytes, at most {MAX_PAYLOAD} can be enqueued in a "
            f"transaction: {BY_REFERENCE}"
        )
    for name, value in (("function", call.function), ("collection", call.collection), ("tenant", call.tenant)):
        if (value or name == "function") and not is_name(value):
            raise InvalidRequest(f"{name} is {value[:NAME_LENGTH]!r}: {EXPECTED}")
    for name, value in (("key", call.key), ("dedupe_key", call.dedupe_key)):
        if "\0" in value:
            raise InvalidRequest(f"{call.function}: its {name} has a NUL: use another one, such as a hash of it")
    if call.on_done:
        raise InvalidRequest(f"{call.function}: enqueue sends no callbacks: leave on_done out, or submit to a gateway")
    if call.dedupe_key.startswith(SUBMISSION_PREFIX):
        raise InvalidRequest(f"dedupe_key may not begin with {SUBMISSION_PREFIX!r}: the platform's own do")
    wait = call.delay if call.at is None else call.at - now
    if wait > MAX_DELAY:
        raise InvalidRequest(
            f"{call.function}: the delay is {duration_text(min(wait, 1e12))}: expected at most "
            f"{duration_text(MAX_DELAY)}"
        )
    headers = _encode(call.headers).decode() if call.headers else ""
    if len(headers) > MAX_HEADERS or "\\u0000" in headers:
        raise InvalidRequest(f"{call.function}: the headers have a NUL or more than {MAX_HEADERS} characters")
    return NewRow(
        token=uuid.uuid4().hex,
        function=call.function,
        payload=call.payload,
        priority=priority,
        collection=call.collection,
        tenant=call.tenant,
        key=call.key,
        dedupe_key=call.dedupe_key,
        headers=headers,
        delay=call.delay,
        at=call.at or 0.0,
        expires_after=-1.0 if call.expires_after is None else call.expires_after,
    )
