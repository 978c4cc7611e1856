"""Dead letters and their filters ↔ messages, both ways. Nothing here waits or decides."""

from __future__ import annotations

from ..model.dead_letter import DeadLetter, Death, LetterFilter, Past
from ..model.tries import Try
from ..model.workload import Kind
from .convert import headers_from_wire, headers_to_wire
from .v1 import gateway_pb2 as pb


def letter_to_wire(letter: DeadLetter) -> pb.DeadLetter:
    """A dead letter as a message."""
    kind = letter.kind
    return pb.DeadLetter(
        id=letter.id,
        function=kind.function,
        priority=kind.priority,
        collection=kind.collection,
        tenant=kind.tenant,
        tailer=letter.tailer,
        outcome=letter.outcome,
        reason=letter.reason,
        attempts=letter.attempts,
        crashes=letter.crashes,
        first_seen=letter.first_seen,
        died_at=letter.died_at,
        payload=letter.payload,
        key=letter.key,
        headers=headers_to_wire(letter.headers),
        progress=letter.progress,
        past=None if letter.past is None else _past_to_wire(letter.past),
        number=letter.number,
        partition=letter.partition,
        position=letter.position if letter.position >= 0 else None,
        tries=[pb.Try(**each._asdict()) for each in letter.tries],
    )


def letter_from_wire(message: pb.DeadLetter) -> DeadLetter:
    """The inverse of `letter_to_wire`."""
    return DeadLetter(
        id=message.id,
        tailer=message.tailer,
        kind=Kind(message.function, message.priority, message.collection, message.tenant),
        payload=message.payload,
        outcome=message.outcome,
        reason=message.reason,
        attempts=message.attempts,
        crashes=message.crashes,
        first_seen=message.first_seen,
        died_at=message.died_at,
        key=message.key,
        headers=headers_from_wire(message.headers),
        progress=message.progress,
        partition=message.partition,
        position=message.position if message.HasField("position") else -1,
        past=_past_from_wire(message.past) if message.HasField("past") else None,
        number=message.number,
        tries=tuple(Try(each.at, each.outcome, each.reason) for each in message.tries),
    )


def _past_to_wire(past: Past) -> pb.Past:
    deaths = [pb.Death(**death._asdict()) for death in past.deaths]
    return pb.Past(tailer=past.tailer, id=past.id, first_seen=past.first_seen, redrives=past.redrives, deaths=deaths)


def _past_from_wire(message: pb.Past) -> Past:
    deaths = tuple(Death(*(getattr(death, name) for name in Death._fields)) for death in message.deaths)
    return Past(message.tailer, message.id, message.first_seen, message.redrives, deaths)


def filter_to_wire(which: LetterFilter) -> pb.DeadFilter:
    """A filter as a message. What only stores ask for does not travel."""
    return pb.DeadFilter(
        ids=which.ids,
        function=which.function,
        tailer=which.tailer,
        collection=which.collection,
        tenant=which.tenant,
        reason=which.reason,
        since=which.since,
        until=which.until,
        attempts=which.attempts,
        crashes=which.crashes,
    )


def filter_from_wire(message: pb.DeadFilter) -> LetterFilter:
    """The inverse of `filter_to_wire`."""
    return LetterFilter(
        ids=tuple(message.ids),
        function=message.function,
        tailer=message.tailer,
        collection=message.collection,
        tenant=message.tenant,
        reason=message.reason,
        since=message.since,
        until=message.until,
        attempts=message.attempts,
        crashes=message.crashes,
    )
