"""Members of a fleet: processes that run tailers, as they tell of themselves in the control store, and what one asks of
another there."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .overview import TailerOverview

#: Seconds between two tellings, and for which a telling holds: three may fail.
TELL_EVERY, TOLD_FOR = 2.0, 8.0
#: Tailers that one member tells of; those that get nowhere go first.
MOST_TOLD = 500
#: Seconds after which what was asked is forgotten, answered or not.
ORDERS_KEPT = 600.0


class Member(NamedTuple):
    """A process with tailers. `id` is drawn by it, `place` is for people (host and process id), `told` its tailers as
    `tailers_to_text` writes them."""

    id: str
    place: str
    told: str


class MemberOrder(NamedTuple):
    """Something that is asked of a member: `asked` and `answer` are texts of both sides; no answer: it has none yet."""

    id: str
    member: str
    asked: str
    answer: str = ""


def tailers_to_text(tailers: list[TailerOverview]) -> str:
    """Tailers as a member tells them."""
    first = sorted(tailers, key=lambda each: each.healthy)[:MOST_TOLD]
    return msgspec.json.encode(first).decode()


def tailers_of(member: Member) -> list[TailerOverview]:
    """The inverse, each with the place where it runs; what a member of another version says otherwise is left out."""
    try:
        found = msgspec.json.decode(member.told, type=list[TailerOverview])
    except msgspec.MsgspecError:
        return []
    for each in found:
        each.process = member.place
    return found
