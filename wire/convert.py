"""Columns on the wire ↔ the model, in full: every value that one side can write the other can read.

Measured: building columns costs half a microsecond an item and reading them one; a message per item costs four times
that. Kinds are sent once per session and direction and then named by number; a table in every message would
cost a quarter of the throughput.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from ..model.priority import LOWEST_RANK
from ..model.workload import UNWRITABLE, DroppedBy, Ended, Extra, Flight, Headers, Kind, Outcomes, Owned
from .v1 import common_pb2 as pb

#: Kinds named at once in one direction of a session; beyond it numbers are used again, oldest first.
KIND_TABLE = 65_536


class KindWriter:
    """The sender's table: kind → number. Invariant: a number means the kind it was last sent with."""

    def __init__(self) -> None:
        self._numbers: dict[Kind, int] = {}
        self._by_number: dict[int, Kind] = {}
        self._next = 0

    def write(self, kinds: Sequence[Kind], items: pb.Items) -> None:
        """Fills `items.kind`, and `items.new_kinds` with the kinds that were not sent before."""
        table = self._numbers
        while True:
            try:
                items.kind.extend([table[kind] for kind in kinds])
                return
            except KeyError:  # naming one may take the number of another of this batch: then that one is named anew
                for kind in dict.fromkeys(kind for kind in kinds if kind not in table):
                    self._name(kind, items)

    def _name(self, kind: Kind, items: pb.Items) -> None:
        number = self._next % KIND_TABLE
        self._next += 1
        former = self._by_number.pop(number, None)
        if former is not None:
            del self._numbers[former]
        self._by_number[number] = kind
        self._numbers[kind] = number
        items.new_kinds.add(
            number=number,
            function=kind.function,
            priority=kind.priority,
            collection=kind.collection,
            tenant=kind.tenant,
        )


class KindReader:
    """The receiver's table: number → kind."""

    def __init__(self) -> None:
        self._kinds: dict[int, Kind] = {}

    def read(self, items: pb.Items) -> list[Kind]:
        """The kind of each item, one shared object per kind."""
        table = self._kinds
        for kind in items.new_kinds:
            rank = min(kind.priority, LOWEST_RANK)  # the sender may know more levels
            table[kind.number] = Kind(kind.function, rank, kind.collection, kind.tenant)
        return [table[number] for number in items.kind]


def headers_to_wire(headers: Headers) -> list[pb.Header]:
    """Header pairs as messages."""
    return [pb.Header(name=name, value=value) for name, value in headers]


def headers_from_wire(headers: Iterable[pb.Header]) -> Headers:
    """Header messages as pairs."""
    return tuple((header.name, header.value) for header in headers)


def write_items(
    items: pb.Items,
    kinds: KindWriter,
    columns: tuple[Sequence[Kind], Sequence[str], Sequence[bytes], Sequence[int]],
    extras: dict[int, Extra],
) -> None:
    """Fills an Items message from parallel lists of kinds, ids, payloads and attempts, and sparse extras."""
    kind, ids, payloads, attempts = columns
    kinds.write(kind, items)
    items.id.extend(ids)
    items.payload.extend(payloads)
    if attempts.count(1) != len(attempts):
        items.attempt.extend(attempts)
    for index, extra in extras.items():
        items.extra.add(
            index=index,
            key=extra.key,
            headers=headers_to_wire(extra.headers),
            crashes=extra.crashes,
            expires_at=extra.expires_at,
            alone=extra.alone,
            progress=extra.progress,
            again=extra.again,
            units=[pb.Units(unit=unit, amount=amount) for unit, amount in extra.units] if extra.units else None,
        )


def read_items(items: pb.Items, kinds: KindReader, number: int, fence: int) -> Flight:
    """An Items message as a Flight."""
    ids = list(items.id)
    return Flight(
        number=number,
        fence=fence,
        kinds=kinds.read(items),
        ids=ids,
        payloads=list(items.payload),
        attempts=list(items.attempt) or [1] * len(ids),
        extras={extra.index: _extra_from_wire(extra) for extra in items.extra} if items.extra else {},
        wants_result=items.wants_result,
        waited=list(items.waited) if items.waited else (),
    )


def owned_to_wire(owned: Owned) -> pb.Owned:
    """A row of ownership as a message. Positions rise; a run without gaps travels as its first."""
    source, partition, epoch, part, positions, parts = owned
    if parts:
        names, counts = zip(*parts, strict=True)
        return pb.Owned(
            source=source, partition=partition, epoch=epoch, positions=positions, parts=names, counts=counts
        )
    run = len(positions) > 1 and positions[-1] - positions[0] == len(positions) - 1
    return pb.Owned(
        source=source, partition=partition, epoch=epoch, part=part, positions=positions[:1] if run else positions
    )


def owned_from_wire(message: pb.Owned, items: int) -> Owned:
    """The inverse of `owned_to_wire`, for a flight of so many items. Raises ValueError for parts of another number."""
    positions: Sequence[int] = message.positions
    if message.parts:
        parts = list(zip(message.parts, message.counts, strict=True))
        if sum(message.counts) != items:
            raise ValueError(f"{items} items are said to be {sum(message.counts)} of several parts")
        return Owned(message.source, message.partition, message.epoch, "", list(positions), parts)
    positions = range(positions[0], positions[0] + items) if len(positions) == 1 else list(positions)
    return Owned(message.source, message.partition, message.epoch, message.part, positions)


def _extra_from_wire(extra: pb.Extra) -> Extra:
    return Extra(
        key=extra.key,
        headers=headers_from_wire(extra.headers),
        crashes=extra.crashes,
        expires_at=extra.expires_at,
        alone=extra.alone,
        progress=extra.progress,
        again=extra.again,
        units=tuple([(each.unit, each.amount) for each in extra.units]) if extra.units else (),
    )


def write_outcomes(message: pb.Outcomes, outcomes: Outcomes) -> None:
    """Fills an Outcomes message. A row that cannot be written becomes UNWRITABLE, and spoils no other."""
    message.succeeded.extend(outcomes.succeeded)
    for ref, ended in outcomes.ended.items():
        try:
            _write_ended(message, ref, ended)
        except (TypeError, ValueError):
            _write_ended(message, ref, UNWRITABLE)


def _write_ended(message: pb.Outcomes, ref: int, ended: Ended) -> None:
    message.ended.add(
        ref=ref,
        outcome=ended.outcome,
        reason=ended.reason,
        after=ended.after,
        result=ended.result,
        crashed=ended.crashed,
        progress=ended.progress,
        dropped_by=None if ended.dropped_by is None else pb.DroppedBy(**ended.dropped_by._asdict()),
        downstream=ended.downstream,
        scope=ended.scope,
        used=[pb.Units(downstream=of, unit=unit, amount=amount) for of, unit, amount in ended.used] or None,
        misfit=ended.misfit,
        asked=ended.asked,
    )


def read_outcomes(message: pb.Outcomes) -> Outcomes:
    """An Outcomes message as the Outcomes of the model."""
    return Outcomes(
        list(message.succeeded),
        {
            ended.ref: Ended(
                outcome=ended.outcome,
                reason=ended.reason,
                after=ended.after if ended.HasField("after") else None,
                result=ended.result if ended.HasField("result") else None,
                crashed=ended.crashed,
                progress=ended.progress,
                dropped_by=_dropped_by(ended.dropped_by) if ended.HasField("dropped_by") else None,
                downstream=ended.downstream,
                scope=ended.scope,
                used=tuple([(each.downstream, each.unit, each.amount) for each in ended.used]) if ended.used else (),
                misfit=ended.misfit,
                asked=ended.asked,
            )
            for ended in message.ended
        },
    )


def _dropped_by(message: pb.DroppedBy) -> DroppedBy:
    return DroppedBy(message.version, message.who, message.why)


def function_to_wire(spec: FunctionSpec) -> pb.Function:
    """A function's spec as a message."""
    text = json.dumps(spec_to_dict(spec), separators=(",", ":"))
    return pb.Function(name=spec.name, version=spec.version, priority=int(spec.priority), spec=text.encode())


def function_from_wire(message: pb.Function) -> FunctionSpec:
    """The inverse of `function_to_wire`."""
    return spec_from_dict(json.loads(message.spec))
