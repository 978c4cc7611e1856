"""Members of a fleet: processes that run tailers, as they tell of themselves in the control store, and what one asks of
another there."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .audit import Audit
from .overview import TailerOverview
from .seek import Move, Seek

#: Seconds between two tellings, and for which a telling holds: three may fail.
TELL_EVERY, TOLD_FOR = 2.0, 8.0
#: Tailers that one member tells of; those that get nowhere go first.
MOST_TOLD = 500
#: Seconds after which what was asked is forgotten, answered or not.
ORDERS_KEPT = 600.0


class FleetMember(NamedTuple):
    """A process with tailers. `id` is drawn by it, `place` is for people (host and process id), `told` its tailers as
    `tailers_to_text` writes them."""

    id: str
    place: str
    told: str


class MemberOrder(NamedTuple):
    """An order to a member: `asked` and `answer` are texts of both sides; no answer: it has none yet."""

    id: str
    member: str
    asked: str
    answer: str = ""


def tailers_to_text(tailers: list[TailerOverview]) -> str:
    """Tailers as a member tells them."""
    first = sorted(tailers, key=lambda each: each.healthy)[:MOST_TOLD]
    return msgspec.json.encode(first).decode()


def tailers_of(member: FleetMember) -> list[TailerOverview]:
    """The inverse, each with the place where it runs; what a member of another version says otherwise is left out."""
    try:
        found = msgspec.json.decode(member.told, type=list[TailerOverview])
    except msgspec.MsgspecError:
        return []
    for each in found:
        each.process = member.place
    return found


class SeekAsked(msgspec.Struct, tag="seek"):
    """A checkpoint is to be moved, as TailerPort's `seek_tailer` has it."""

    seek: Seek


class AuditAsked(msgspec.Struct, tag="audit"):
    """An audit, as TailerPort's `audit` has it."""

    tailer: str
    partition: str | None = None
    span: tuple[int, int] | None = None


class Answered(msgspec.Struct):
    """The answer to either: the result, or why it was refused. `again`: it may be asked again as it is."""

    moves: list[Move] = []
    audits: list[Audit] = []
    refused: str = ""
    again: bool = False


_asked: msgspec.json.Decoder[SeekAsked | AuditAsked] = msgspec.json.Decoder(SeekAsked | AuditAsked)
_answer = msgspec.json.Decoder(Answered)


def asked_text(asked: SeekAsked | AuditAsked | Answered) -> str:
    """An order or an answer as it rests in a control store."""
    return msgspec.json.encode(asked).decode()


def asked_of(order: MemberOrder) -> SeekAsked | AuditAsked | None:
    """Decodes the request in an order; None: this version does not know such a request."""
    try:
        return _asked.decode(order.asked)
    except msgspec.MsgspecError:
        return None


def answered_by(order: MemberOrder) -> Answered | None:
    """Decodes the answer to an order; None: it has no answer yet."""
    return _answer.decode(order.answer) if order.answer else None
