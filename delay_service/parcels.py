"""Several parked items in one record of a rung, on a log where each record is dear, as on Kafka.

A rung is read by the mover alone, and items that entered it together leave it together: so the records of one append
travel as one, a parcel, whose payload is a batch as other logs store it. Due items are unpacked, since tailers settle
items one by one. A log that stores an append as one entry anyway (`Log.batches`) gets no parcels.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.workload import Headers
from ..stores.log.batch import decode, rows
from ..stores.log.log import Record

#: The header of a parcel: how many items are in it.
PARCEL = "tailrace-parcel"


def packed(stream: str, records: Sequence[Record]) -> list[Record]:
    """The records as parcels of bounded size; one alone stays as it is. Raises InvalidPayload for one too large."""
    parcels: list[Record] = []
    begin = 0
    for count, _, columns, _ in rows(stream, records):
        if count == 1:
            parcels.append(records[begin])
        else:
            parcels.append(Record(columns, "", ((PARCEL, str(count)),)))
        begin += count
    return parcels


def unpacked(record: Record) -> list[Record]:
    """The items in a record: the record itself, unless it is a parcel (one that cannot be read is itself, too)."""
    if not _is_parcel(record.headers):
        return [record]
    try:
        columns = decode(record.payload)
        count = len(columns.payloads)
        keys = columns.keys or [""] * count
        of = columns.header_of or [0] * count
        headers = [columns.header_sets[number] for number in of]
        return [Record(*each) for each in zip(columns.payloads, keys, headers, strict=True)] or [record]
    except (msgspec.DecodeError, IndexError, ValueError):
        return [record]


def items_in(headers: Headers) -> int:
    """Number of items in a record with these headers, as it says itself."""
    return int(headers[0][1]) if _is_parcel(headers) and headers[0][1].isdecimal() else 1


def _is_parcel(headers: Headers) -> bool:
    return bool(headers) and headers[0][0] == PARCEL
