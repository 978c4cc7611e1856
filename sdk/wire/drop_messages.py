"""Ranges of dropped positions ↔ messages."""

from __future__ import annotations

from ..model.drop import Cause, Drop, DropRow
from .v1 import gateway_pb2 as pb


def drop_to_wire(row: DropRow) -> pb.Drop:
    """A range as a message."""
    drop = row.drop
    return pb.Drop(
        tailer=row.source,
        partition=row.partition,
        first=drop.first,
        last=drop.last,
        items=drop.items,
        cause=int(drop.cause),
        version=drop.version,
        who=drop.who,
        why=drop.why,
        at=drop.at,
    )


def drop_from_wire(message: pb.Drop) -> DropRow:
    """The inverse of `drop_to_wire`."""
    drop = Drop(
        message.first,
        message.last,
        message.items,
        Cause(message.cause),
        message.version,
        message.who,
        message.why,
        message.at,
    )
    return DropRow(message.tailer, message.partition, drop)
