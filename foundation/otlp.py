"""Encodes our own spans straight into the bytes of OTLP. Through the SDK's objects a span takes ten times as long, and
that is most of the cost of a trace. A test reads the bytes by the protocol's own messages.

An attribute is encoded once for each value that is met again and again (names of functions, outcomes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

from ..model.plain_text import plain
from ..model.spans import INVOCATION, MESSAGE_ID, Span
from .proxies import exporting

#: Characters of a text at most.
LONGEST = 2000
#: The flag of a sampled span.
_FLAGS = b"\x01\x00\x00\x00"
_TIMES = Struct("<cQcQ")
#: Attributes whose values are met once.
_UNIQUE = frozenset((MESSAGE_ID, INVOCATION))
#: Characters of a text that is remembered encoded.
_SHORT = 80
_DOUBLE = Struct("<d").pack


class SpanExporter:
    """Exports our own spans and the SDK's, of this process, to the endpoint that the environment names."""

    def __init__(self, resource: Any) -> None:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        # The exporter's own sender: with retries, time-out, headers, compression and certificates.
        self._send: Callable[[bytes], Any] = OTLPSpanExporter(**exporting("TRACES"))._client.export
        self._theirs = encode_spans
        attributes = b"".join(_field(b"\x0a", _attribute(name, value)) for name, value in resource.attributes.items())
        self._resource = _field(b"\x0a", attributes)

    def export(self, spans: Sequence[Any]) -> bool:
        """Sends spans. True: they have arrived."""
        ours = [each for each in spans if isinstance(each, Span)]
        theirs = [each for each in spans if not isinstance(each, Span)]
        data = self._theirs(theirs).SerializeToString() if theirs else b""
        return bool(self._send(data + (request(self._resource, ours) if ours else b"")).success)


def request(resource: bytes, spans: Sequence[Span]) -> bytes:
    """An ExportTraceServiceRequest; two of them, one behind the other, are one."""
    scope = _field(b"\x0a", _field(b"\x0a", b"tailrace"))
    found = scope + b"".join([_field(b"\x12", encoded(span)) for span in spans])
    return _field(b"\x0a", resource + _field(b"\x12", found))


def encoded(span: Span) -> bytes:
    """The message of a span."""
    parts = [
        b"\x0a\x10",
        span.trace_id.to_bytes(16, "big"),
        b"\x12\x08",
        span.span_id.to_bytes(8, "big"),
        _name(span.name) if len(span.name) <= _SHORT else _field(b"\x2a", span.name.encode()),
        _KINDS[span.kind],
        _TIMES.pack(b"\x39", int(span.start * 1e9), b"\x41", int(span.end * 1e9)),
    ]
    if span.parent:
        parts += (b"\x22\x08", span.parent.to_bytes(8, "big"))
    for name, value in span.attributes.items():
        if value.__class__ is str and len(value) <= _SHORT:
            parts.append(_text(name, value) if name in _UNIQUE else _remembered(name, value))
        elif value.__class__ is int:
            parts.append(_number(name, value))
        else:
            parts.append(_field(b"\x4a", _attribute(name, value)))
    for name, at, attributes in span.events:
        inside = b"".join([_field(b"\x1a", _attribute(*each)) for each in attributes.items()])
        time = b"\x09" + int(at * 1e9).to_bytes(8, "little")
        parts.append(_field(b"\x5a", time + _field(b"\x12", plain(name, LONGEST).encode()) + inside))
    for trace_id, span_id in span.links:
        link = b"\x0a\x10" + trace_id.to_bytes(16, "big") + b"\x12\x08" + span_id.to_bytes(8, "big")
        parts.append(_field(b"\x6a", link + b"\x35" + _FLAGS))
    if span.error:
        parts.append(_field(b"\x7a", _field(b"\x12", plain(span.error, LONGEST).encode()) + b"\x18\x02"))
    parts += (b"\x85\x01", _FLAGS)
    return b"".join(parts)


#: The kinds of spans; 0 is nothing there.
_KINDS = [b"\x30" + bytes((kind + 1,)) for kind in range(5)]


@lru_cache(4096)
def _name(name: str) -> bytes:
    return _field(b"\x2a", name.encode())


@lru_cache(4096)
def _remembered(name: str, value: str) -> bytes:
    return _field(b"\x4a", _attribute(name, value))


@lru_cache(4096)
def _number(name: str, value: int) -> bytes:
    return _field(b"\x4a", _attribute(name, value))


def _text(name: str, value: str) -> bytes:
    """An attribute of one of the `_UNIQUE` names, which are short enough for lengths of one byte."""
    if not value.isascii():
        return _field(b"\x4a", _attribute(name, value))
    key, size = name.encode(), len(value)
    inside = len(key) + size + 6
    if inside > 127:
        return _field(b"\x4a", _attribute(name, value))
    return b"\x4a%c\x0a%c%b\x12%c\x0a%c%b" % (inside, len(key), key, size + 2, size, value.encode())


def _attribute(name: str, value: Any) -> bytes:
    return _field(b"\x0a", plain(name, LONGEST).encode()) + _field(b"\x12", _value(value))


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return b"\x18" + _varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return b"\x21" + _DOUBLE(value)
    if isinstance(value, list | tuple):
        return _field(b"\x2a", b"".join([_field(b"\x0a", _value(each)) for each in value[:128]]))
    return _field(b"\x0a", plain(value, LONGEST).encode())


def _field(tag: bytes, data: bytes) -> bytes:
    size = len(data)
    if size < 128:
        return b"%b%c%b" % (tag, size, data)
    if size < 1 << 14:
        return b"%b%c%c%b" % (tag, size & 127 | 128, size >> 7, data)
    return tag + _varint(size) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
