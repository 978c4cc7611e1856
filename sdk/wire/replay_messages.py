"""Replays ↔ messages. What a client gets is told, not kept: the positions themselves stay in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.audit import Fate
from ..model.replay import Bound, Progress, ReplayOrder
from .v1 import gateway_pb2 as pb


class StretchView(NamedTuple):
    """As Stretch, with how many `ranges` its positions are in for the positions."""

    partition: str
    first: int
    end: int
    items: int
    waiting: int
    ranges: int


@dataclass(frozen=True, slots=True)
class ReplayView:
    """As Progress, for people. `number` is 0 for one that was not begun."""

    number: int
    tailer: str
    name: str
    state: str
    items: int
    ended: int
    counts: dict[str, int]
    detail: str
    only: str
    rate: float
    priority: str
    who: str
    why: str
    created_at: float
    ended_at: float
    stretches: list[StretchView] = field(default_factory=list)


def order_to_wire(order: ReplayOrder) -> pb.StartReplayRequest:
    """What an operator wants, as a message."""
    begin, end = _bound_to_wire(order.begin), _bound_to_wire(order.end)
    said = {name: value for name, value in order._asdict().items() if name not in ("begin", "end")}
    return pb.StartReplayRequest(begin=begin, end=end, **said)


def order_from_wire(message: pb.StartReplayRequest) -> ReplayOrder:
    """The inverse of `order_to_wire`."""
    return ReplayOrder(
        message.tailer,
        _bound_from_wire(message.begin),
        _bound_from_wire(message.end),
        message.only,
        message.partition if message.HasField("partition") else None,
        message.rate,
        message.priority,
        message.who,
        message.why,
        message.dry_run,
    )


def _bound_to_wire(bound: Bound) -> pb.ReplayBound:
    if bound.position is not None:
        return pb.ReplayBound(position=bound.position)
    return pb.ReplayBound(edge=bound.edge) if bound.edge else pb.ReplayBound(time=bound.time)


def _bound_from_wire(message: pb.ReplayBound) -> Bound:
    return Bound(message.position if message.HasField("position") else None, message.edge, message.time)


def progress_to_wire(progress: Progress) -> pb.Replay:
    """How far a replay is, as a message."""
    replay = progress.replay
    return pb.Replay(
        number=replay.number,
        tailer=replay.tailer,
        name=replay.name,
        stretches=[
            pb.ReplayStretch(
                partition=each.partition,
                first=each.first,
                end=each.end,
                items=each.items,
                waiting=each.waiting,
                ranges=len(each.spans),
            )
            for each in replay.stretches
        ],
        only=replay.only,
        rate=replay.rate,
        priority=replay.priority,
        who=replay.who,
        why=replay.why,
        created_at=replay.created_at,
        state=replay.state,
        ended_at=replay.ended_at,
        items=replay.items,
        counts=[pb.CountByName(name=name, count=count) for name, count in progress.counts.items()],
        detail=progress.detail,
    )


def view_from_wire(message: pb.Replay) -> ReplayView:
    """What a client sees of it."""
    counts = {each.name: int(each.count) for each in message.counts}
    return ReplayView(
        int(message.number),
        message.tailer,
        message.name,
        message.state,
        int(message.items),
        sum(counts.values()) - counts.get(Fate.DELAYED.label, 0),
        counts,
        message.detail,
        message.only,
        message.rate,
        message.priority,
        message.who,
        message.why,
        message.created_at,
        message.ended_at,
        [
            StretchView(each.partition, each.first, each.end, each.items, each.waiting, each.ranges)
            for each in message.stretches
        ],
    )
