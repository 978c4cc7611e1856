"""Conversion of a row of an outbox into an item of the queue. Anybody may write rows, by hand and in any language, so
each is fully checked: even the type of a value, and that a text is valid, are not taken for granted."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import msgspec

from ...model.errors import InvalidRequest
from ...model.name import EXPECTED, NAME_LENGTH, check_not_reserved, is_name
from ...model.priority import HIGHEST, LOWEST
from ...model.workload import Kind
from ..postgres.arrays import shown
from ..queue.admission import SUBMISSION_PREFIX
from ..queue.queue import NewItem
from .row import MAX_HEADERS

_TOKEN = re.compile(r"[0-9a-f]{32}")
#: Most characters of the reason for which a row was set aside.
REASON = 500
TEXTS = ("token", "function", "collection", "tenant", "key", "dedupe_key", "headers")
_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


class UnreadToken(NamedTuple):
    """A stand-in for the token of a row that the database cannot send, with the reason."""

    why: str


class OutboxRow(NamedTuple):
    """A row as it is stored in an outbox. `due_in` and `expires_in` are seconds from the time of reading, by the
    database's clock, so that a host whose clock is wrong starts nothing early. `due_in` below zero: at once;
    `expires_in` None: never. A row written by hand may have values of any type in every column but `place`: `item_of`
    checks them. A text that is not UTF-8 has half characters (lone surrogates, PEP 383) for its invalid bytes."""

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


def unread(place: int, why: str) -> OutboxRow:
    """A row of which only the place could be read: `item_of` refuses it with the reason."""
    token: Any = UnreadToken(why)
    return OutboxRow(place, token, "", b"", 0, "", "", "", "", "", 0.0, None)


def item_of(row: OutboxRow, now: float, *, token: bool = True) -> NewItem:
    """The item of a row read at `now` (wall clock seconds). With `token` it is submitted under the row's own token, so
    that a row that is submitted twice is one workload. Raises InvalidRequest with the fault of the row."""
    _refuse_types(row)
    for name, value in (("function", row.function), ("collection", row.collection), ("tenant", row.tenant)):
        if (value or name == "function") and not is_name(value):
            raise InvalidRequest(f"{name} is {value[:NAME_LENGTH]!r}: {EXPECTED}")
    check_not_reserved("function", row.function)
    for name, value in (("key", row.key), ("dedupe_key", row.dedupe_key)):
        if len(value) > NAME_LENGTH or "\0" in value:
            raise InvalidRequest(f"{name} has more than {NAME_LENGTH} characters, or a NUL")
    if row.dedupe_key.startswith(SUBMISSION_PREFIX):
        raise InvalidRequest(f"dedupe_key begins with {SUBMISSION_PREFIX!r}, as only the platform's own may")
    if not 0 <= row.priority <= LOWEST:
        bounds = f"0 ({HIGHEST.label}) to {int(LOWEST)} ({LOWEST.label})"
        raise InvalidRequest(f"priority is {row.priority}: expected {bounds}")
    if not _TOKEN.fullmatch(row.token):
        raise InvalidRequest(f"token is {row.token[:40]!r}: expected 32 hexadecimal digits, or none")
    if len(row.headers) > MAX_HEADERS:
        raise InvalidRequest(f"headers have {len(row.headers)} characters: expected at most {MAX_HEADERS}")
    try:
        headers = tuple(_pairs(row.headers)) if row.headers else ()
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"headers: {error}: expected a JSON array of pairs of texts") from None
    due = now + row.due_in if row.due_in > 0 else 0.0
    expires_at = 0.0 if row.expires_in is None else max(1.0, now + row.expires_in)
    dedupe_key = row.dedupe_key or (SUBMISSION_PREFIX + row.token if token else "")
    kind = Kind(row.function, row.priority, row.collection, row.tenant)
    return NewItem(kind, row.payload, due, row.key, headers, dedupe_key, expires_at)


def reason_text(reason: object) -> str:
    """The reason why a row was set aside, in characters that any database can store and any terminal can show; never
    empty."""
    return shown(str(reason)[:REASON]) or "refused"


def _refuse_types(row: OutboxRow) -> None:
    """Raises InvalidRequest for a value that has not the type of its column, a text that is not valid, and a time that
    is not finite."""
    if isinstance(row.token, UnreadToken):
        raise InvalidRequest(f"the database cannot send this row: {row.token.why}")
    texts = row.token, row.function, row.collection, row.tenant, row.key, row.dedupe_key, row.headers
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        for name, text in zip(TEXTS, texts, strict=True):
            _refuse_text(name, text)
    if not isinstance(row.payload, bytes):
        raise InvalidRequest(f"payload is {_kind(row.payload)}: expected bytes")
    if type(row.priority) is not int:
        raise InvalidRequest(f"priority is {_kind(row.priority)}: expected a whole number")
    for name, moment in (("due_at", row.due_in), ("expires_at", row.expires_in)):
        if moment is None and name == "expires_at":
            continue
        if not isinstance(moment, int | float) or not math.isfinite(moment):
            told = moment if isinstance(moment, float) else _kind(moment)
            raise InvalidRequest(f"{name} is {told}: expected seconds since 1970")


def _refuse_text(name: str, text: Any) -> None:
    if not isinstance(text, str):
        raise InvalidRequest(f"{name} is {_kind(text)}: expected text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name} is not valid UTF-8: {text[:40]!r}") from None


def _kind(value: object) -> str:
    """The type of a value, in the words of a database."""
    if value is None:
        return "NULL"
    words = {bytes: "a blob", str: "text", float: "a number with a fraction", int: "a number", bool: "true or false"}
    return words.get(type(value), f"of type {type(value).__name__}")
