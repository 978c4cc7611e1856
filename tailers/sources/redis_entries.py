"""A Redis Stream's entry → an item: its id as a position, its fields as payload, key and headers.

An id `<milliseconds>-<sequence>` is the position `milliseconds << 20 | sequence`: the same order, one number of 63 bits
until the year 2248, with a million entries in each millisecond. An id that does not fit is refused, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...foundation.config import Start
from ...model.errors import InvalidRequest
from ...model.life import OnRecreated
from ...model.workload import Headers
from ...sdk.source import StreamBatch
from ...stores.redis.options import RedisOptions
from ..rules.retention_loss import StreamFacts

SEQUENCE_BITS = 20
_SEQUENCES = 1 << SEQUENCE_BITS
_MILLISECONDS = 1 << (63 - SEQUENCE_BITS)
_NOTHING = b"0-0"
#: Bytes of a digest of an entry.
DIGEST = 8
#: Sets of headers remembered; forgotten whole when full.
_REMEMBERED = 65_536

_json = msgspec.json.Encoder().encode


class PayloadField(BaseModel):
    """The value of one field as the payload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str = Field(min_length=1)


class RedisStreamOptions(RedisOptions):
    """Redis Streams of one server.

    streams   the keys of the streams; one that does not exist yet is waited for
    payload   json: all fields as one JSON object of texts; {field: NAME}: that field's value as it is
    key_field  the field that holds the record's key; none: no key
    headers   the fields that become headers; default: with {field: NAME} all other fields, with json none
    start     where the first start begins: earliest, latest, how long before it (2h), or a time; by the entries' ids
    on_recreated  a stream that was deleted and made again, with entries that would be passed over: stop the tailer, or
              read the new one from its start
    """

    streams: tuple[str, ...] = Field(min_length=1, max_length=1000)
    payload: Literal["json"] | PayloadField = "json"
    key_field: str | None = None
    headers: tuple[str, ...] | None = None
    start: Start = "earliest"
    on_recreated: OnRecreated = "stop"

    @field_validator("streams")
    @classmethod
    def _are_different(cls, streams: tuple[str, ...]) -> tuple[str, ...]:
        if not all(streams) or len(set(streams)) < len(streams):
            raise ValueError("expected keys of streams, each once")
        return streams


def position_of(id: bytes, stream: str) -> int:
    """An id as a position. Raises InvalidRequest for one that does not fit."""
    first, _, second = id.partition(b"-")
    milliseconds, sequence = int(first), int(second)
    if sequence >= _SEQUENCES or milliseconds >= _MILLISECONDS:
        raise InvalidRequest(
            f"the stream {stream!r} has the entry {id.decode()}: as a position it does not fit into 63 bits, of which "
            f"{SEQUENCE_BITS} are for the sequence. Entries with ids of the server's own (XADD … *) always fit"
        )
    return milliseconds << SEQUENCE_BITS | sequence


def id_of(position: int) -> str:
    """The id of a position, the inverse of `position_of`."""
    return f"{position >> SEQUENCE_BITS}-{position & (_SEQUENCES - 1)}"


def facts_of(answer: list[Any] | None, stream: str) -> StreamFacts:
    """The facts in an answer to XINFO STREAM; an answer of None: there is no such key."""
    if answer is None:
        return StreamFacts(0, None, -1)
    said = dict(zip(answer[::2], answer[1::2], strict=True))
    first, last, deleted = said[b"first-entry"], said[b"last-generated-id"], said.get(b"max-deleted-entry-id", _NOTHING)
    return StreamFacts(
        said[b"length"],
        None if first is None else position_of(first[0], stream),
        -1 if last == _NOTHING else position_of(last, stream),
        said.get(b"entries-added", -1),
        -1 if deleted == _NOTHING else position_of(deleted, stream),
    )


def digest_of(fields: Sequence[bytes]) -> bytes:
    """A digest of an entry's fields, by which it is known again."""
    found = blake2b(digest_size=DIGEST)
    for each in fields:
        found.update(b"%d:" % len(each))
        found.update(each)
    return found.digest()


class EntryMapping:
    """Makes items of entries by the options. Entries with the same headers share them."""

    def __init__(self, options: RedisStreamOptions) -> None:
        self._field = None if options.payload == "json" else options.payload.field
        self._name = (self._field or "").encode()
        self._key = None if options.key_field is None else options.key_field.encode()
        self._wanted = None if options.headers is None else {name.encode() for name in options.headers}
        if self._field is None and self._wanted is None:
            self._wanted = set()
        self._headers: dict[tuple[bytes, ...], Headers] = {}

    def batch(self, stream: str, rows: Sequence[Any], max_bytes: int = 1 << 62) -> StreamBatch:
        """The first of the entries (id, fields), as many as fit into `max_bytes`; at least one."""
        batch = StreamBatch(stream, [], [], [], [], [])
        for id, fields in rows:
            payload, others, refused = self._payload(fields)
            max_bytes -= len(payload)
            if max_bytes < 0 and batch.positions:
                break
            if refused:
                batch.refused[len(batch.positions)] = refused
            position = position_of(id, stream)
            batch.positions.append(position)
            batch.times.append((position >> SEQUENCE_BITS) / 1000)
            batch.keys.append(self._key_of(fields))
            batch.headers.append(self._headers_of(others))
            batch.payloads.append(payload)
        return batch

    def _payload(self, fields: list[bytes]) -> tuple[bytes, list[bytes], str]:
        """An entry's payload, the other fields, and why it cannot be handed out (then the payload has all fields)."""
        if self._field is not None:
            try:
                place = 2 * fields[::2].index(self._name)
            except ValueError:
                return _told(fields), fields, f"the entry has no field {self._field!r}"
            return fields[place + 1], fields[:place] + fields[place + 2 :], ""
        texts = [value.decode(errors="surrogateescape") for value in fields]
        try:
            return _json(dict(zip(texts[::2], texts[1::2], strict=True))), fields, ""
        except UnicodeEncodeError:
            return _told(fields), fields, "a field is not UTF-8 text: hand it out as it is, with payload: {field: NAME}"

    def _key_of(self, fields: list[bytes]) -> str:
        if self._key is None or self._key not in fields[::2]:
            return ""
        return _text(fields[2 * fields[::2].index(self._key) + 1])

    def _headers_of(self, fields: list[bytes]) -> Headers:
        if self._wanted is not None:
            if not self._wanted:
                return ()
            places = [place for place in range(0, len(fields), 2) if fields[place] in self._wanted]
            fields = [part for place in places for part in fields[place : place + 2]]
        raw = tuple(fields)
        headers = self._headers.get(raw)
        if headers is None:
            headers = tuple((_text(name), _text(value)) for name, value in zip(fields[::2], fields[1::2], strict=True))
            if len(self._headers) >= _REMEMBERED:
                self._headers.clear()
            self._headers[raw] = headers
        return headers


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def _told(fields: list[bytes]) -> bytes:
    return _json(dict(zip(map(_text, fields[::2]), map(_text, fields[1::2]), strict=True)))
