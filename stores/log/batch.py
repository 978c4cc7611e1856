"""A batch of records as one row: its columns in one MessagePack blob. Equal headers in a batch are stored once and come
back as one shared tuple. An append is cut into batches of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from ...model.errors import InvalidPayload
from ...model.workload import Headers
from .log import Record, Records

#: Records and bytes in one row.
BATCH_RECORDS = 1024
BATCH_BYTES = 1 << 20
#: Bytes of one record's payload, key and headers: it must fit into a message.
MAX_RECORD = 12 << 20


class Columns(msgspec.Struct, array_like=True):
    """A batch as it is stored. `keys` is None when all are empty; `header_of` None when all records share the first
    header set."""

    payloads: list[bytes]
    keys: list[str] | None
    header_sets: list[Headers]
    header_of: list[int] | None


class Batch(NamedTuple):
    """One row of the log: records from position `first` on, appended at `time`."""

    first: int
    time: float
    columns: Columns

    @property
    def end(self) -> int:
        return self.first + len(self.columns.payloads)


class BatchRow(NamedTuple):
    """A batch to be appended: its number of records, its size in bytes, and its columns, encoded and as they are."""

    records: int
    size: int
    blob: bytes
    columns: Columns


_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Columns).decode


def rows(stream: str, records: Sequence[Record]) -> list[BatchRow]:
    """An append as rows of bounded size. Raises InvalidPayload for a record that is too large."""
    if len(records) == 1:  # as most have that go into many streams at once
        (only,) = records
        row = _pack([only.payload], [only.key], [only.headers])
        if row.size <= MAX_RECORD:
            return [row]
    payloads = [record.payload for record in records]
    keys = [record.key for record in records]
    headers = [record.headers for record in records]
    header_bytes = {each: sum(map(len, chain(*each))) for each in set(headers)}
    sizes = list(map(len, payloads))
    if any(keys):
        sizes = [size + len(key) for size, key in zip(sizes, keys, strict=True)]
    if any(header_bytes.values()):
        sizes = [size + header_bytes[each] for size, each in zip(sizes, headers, strict=True)]
    if (largest := max(sizes)) > MAX_RECORD:
        raise InvalidPayload(
            f"stream {stream!r}: a record has {largest} bytes, at most {MAX_RECORD} are allowed; store it elsewhere "
            "and append a reference"
        )
    return [_pack(payloads[begin:end], keys[begin:end], headers[begin:end]) for begin, end in _cuts(sizes)]


def _cuts(sizes: list[int]) -> list[tuple[int, int]]:
    """The first and end index of each batch, for records of these sizes."""
    if len(sizes) <= BATCH_RECORDS and sum(sizes) <= BATCH_BYTES:
        return [(0, len(sizes))]
    cuts, begin, total = [], 0, 0
    for index, size in enumerate(sizes):
        if index > begin and (index - begin >= BATCH_RECORDS or total + size > BATCH_BYTES):
            cuts.append((begin, index))
            begin, total = index, 0
        total += size
    return [*cuts, (begin, len(sizes))]


def _pack(payloads: list[bytes], keys: list[str], headers: list[Headers]) -> BatchRow:
    if len(headers) == 1:
        columns = Columns(payloads, keys if keys[0] else None, headers, None)
    else:
        sets = {each: number for number, each in enumerate(dict.fromkeys(headers))}
        header_of = [sets[each] for each in headers] if len(sets) > 1 else None
        columns = Columns(payloads, keys if any(keys) else None, list(sets), header_of)
    blob = _encode(columns)
    return BatchRow(len(payloads), len(blob), blob, columns)


def take(found: Records, batch: Batch, position: int, limit: int, max_bytes: int) -> tuple[int, int]:
    """Adds a batch's records from `position` on to `found`, at least one in all; returns how many, and their bytes."""
    columns = batch.columns
    begin = max(0, position - batch.first)
    end = min(len(columns.payloads), begin + limit)
    payloads = columns.payloads[begin:end]
    size = sum(map(len, payloads))
    if size > max_bytes:
        size = kept = 0
        for payload in payloads:
            if (kept or found.positions) and size + len(payload) > max_bytes:
                break
            size += len(payload)
            kept += 1
        payloads, end = payloads[:kept], begin + kept
    count = max(0, end - begin)
    found.positions.extend(range(batch.first + begin, batch.first + end))
    found.times.extend([batch.time] * count)
    found.keys.extend(columns.keys[begin:end] if columns.keys else [""] * count)
    if columns.header_of is None:
        found.headers.extend([columns.header_sets[0]] * count)
    else:
        sets = columns.header_sets
        found.headers.extend([sets[number] for number in columns.header_of[begin:end]])
    found.payloads.extend(payloads)
    return count, size
