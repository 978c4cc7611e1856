"""Moves of checkpoints ↔ messages."""

from __future__ import annotations

from ..model.seek import Move, Seek
from .v1 import gateway_pb2 as pb


def seek_to_wire(seek: Seek) -> pb.SeekTailerRequest:
    """What an operator wants, as a message."""
    request = pb.SeekTailerRequest(
        tailer=seek.tailer, partition=seek.partition, who=seek.who, why=seek.why, dry_run=seek.dry_run
    )
    if seek.position is not None:
        request.position = seek.position
    elif seek.edge:
        request.edge = seek.edge
    else:
        request.time = seek.time
    return request


def seek_from_wire(message: pb.SeekTailerRequest) -> Seek:
    """The inverse of `seek_to_wire`."""
    return Seek(
        message.tailer,
        message.position if message.HasField("position") else None,
        message.edge,
        message.time,
        message.partition if message.HasField("partition") else None,
        message.who,
        message.why,
        message.dry_run,
    )


def moves_to_wire(moves: list[Move]) -> pb.SeekTailerReply:
    """What became of it, as a message."""
    return pb.SeekTailerReply(moves=[pb.SeekMove(**move._asdict()) for move in moves])


def moves_from_wire(message: pb.SeekTailerReply) -> list[Move]:
    """The inverse of `moves_to_wire`."""
    return [Move(each.partition, each.before, each.after, each.dropped) for each in message.moves]
