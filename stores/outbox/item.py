"""A row of an outbox → an item of the queue. Anybody may write rows, so each is looked at as if nobody had before."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from ...sdk.model.errors import InvalidRequest
from ...sdk.model.function_spec import NAME_LENGTH, NAME_PATTERN
from ...sdk.model.priority import Priority
from ...sdk.model.workload import Kind
from ..queue.admission import SUBMISSION_PREFIX
from ..queue.queue import NewItem

_NAME = re.compile(NAME_PATTERN)
_TOKEN = re.compile(r"[0-9a-f]{32}")
_HIGHEST = int(max(Priority))
_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


class Row(NamedTuple):
    """A row as it rests in an outbox. `due_in` and `expires_in` are seconds from when it was read, by the database's
    clock: so a host whose clock is wrong starts nothing early. `due_in` below zero: at once; `expires_in` None:
    never."""

    place: int
    token: str
    function: str
    payload: bytes
    priority: int
    collection: str
    tenant: str
    key: str
    dedupe_key: str
    headers: str
    due_in: float
    expires_in: float | None


def item_of(row: Row, now: float, *, token: bool = True) -> NewItem:
    """The item of a row read at `now` (wall clock seconds). With `token` it is submitted under the row's own token, so
    that a row that is submitted twice is one workload. Raises InvalidRequest saying what is wrong with the row."""
    for name, value in (("function", row.function), ("collection", row.collection), ("tenant", row.tenant)):
        if (value or name == "function") and not (len(value) <= NAME_LENGTH and _NAME.fullmatch(value)):
            raise InvalidRequest(
                f"{name} is {value[:NAME_LENGTH]!r}: expected at most {NAME_LENGTH} letters, digits or _ . - / :"
            )
    for name, value in (("key", row.key), ("dedupe_key", row.dedupe_key)):
        if len(value) > NAME_LENGTH or "\0" in value:
            raise InvalidRequest(f"{name} has more than {NAME_LENGTH} characters, or a NUL")
    if row.dedupe_key.startswith(SUBMISSION_PREFIX):
        raise InvalidRequest(f"dedupe_key begins with {SUBMISSION_PREFIX!r}, as only the platform's own may")
    if not 0 <= row.priority <= _HIGHEST:
        raise InvalidRequest(f"priority is {row.priority}: expected 0 (interactive) to {_HIGHEST}")
    if not _TOKEN.fullmatch(row.token):
        raise InvalidRequest(f"token is {row.token[:40]!r}: expected 32 hexadecimal digits, or none")
    try:
        headers = tuple(_pairs(row.headers)) if row.headers else ()
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"headers: {error}: expected a JSON array of pairs of texts") from None
    due = now + row.due_in if row.due_in > 0 else 0.0
    expires_at = 0.0 if row.expires_in is None else max(1.0, now + row.expires_in)
    dedupe_key = row.dedupe_key or (SUBMISSION_PREFIX + row.token if token else "")
    kind = Kind(row.function, row.priority, row.collection, row.tenant)
    return NewItem(kind, row.payload, due, row.key, headers, dedupe_key, expires_at)
