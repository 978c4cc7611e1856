"""Records of Kafka ↔ records of a log or a source: bytes, or none at all, on one side, texts on the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model.workload import Headers

#: The header of a record without a value: on a compacted topic its key was deleted.
TOMBSTONE = "kafka.tombstone"
#: The header that stands for all headers of a record where the client cannot read the name of one.
UNREADABLE = "kafka.unreadable-headers"
#: The prefix of a name in hexadecimal: a name with a zero byte is written so, since librdkafka would cut it there.
HEX = "tailrace.hex:"


def text_of(data: bytes | None) -> str:
    """Bytes as text; bytes that are not UTF-8 stay distinguishable, as \\xNN."""
    return "" if data is None else data.decode("utf-8", "backslashreplace")


def headers_of(headers: Iterable[tuple[str, bytes | None]] | None, cache: dict[tuple[object, ...], Headers]) -> Headers:
    """The headers as texts. `cache` makes equal ones one tuple; it lives as long as one batch."""
    if not headers:
        return ()
    key = tuple(headers)
    if len(key) == 1:  # the item's own, and of its own: see model.parked
        ((name, value),) = key
        return ((_plain(name), text_of(value)),)
    found = cache.get(key)
    if found is None:
        found = cache[key] = tuple((_plain(name), text_of(value)) for name, value in key)
    return found


def with_tombstone(headers: Headers, value: bytes | None) -> Headers:
    """The headers of a record, with one added where the record had no value."""
    return headers if value is not None else (*headers, (TOMBSTONE, "1"))


def _plain(name: str) -> str:
    """The name of a header as it was given to us. A name that others wrote, and that only looks like one of our encoded
    names, stays as it is."""
    if not name.startswith(HEX):
        return name
    try:
        return bytes.fromhex(name.removeprefix(HEX)).decode()
    except ValueError:
        return name


def _safe(name: str) -> str:
    return HEX + name.encode().hex() if "\0" in name or name.startswith(HEX) else name


def to_kafka(key: str, headers: Headers) -> tuple[bytes | None, Sequence[tuple[str, bytes]]]:
    """The key and headers of a log's record in the form of Kafka. An empty key becomes none at all."""
    return key.encode() if key else None, [(_safe(name), value.encode()) for name, value in headers]
