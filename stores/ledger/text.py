"""A row of the ledger as a text, so that comparing it whole is comparing two texts, and floats survive exactly; and the
order in which changes of one position are made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...sdk.model.tries import Try
from .ledger import Change, Entry, Place

#: Rows whose text is remembered: one that was written is what the next write of it compares with.
REMEMBERED = 2048
#: Fields of a row behind its place, without the tries.
_PLAIN = len(Entry._fields) - 3


@lru_cache(REMEMBERED)
def entry_text(entry: Entry) -> str:
    """The one form of a row: its fields as JSON, floats as Python writes them. Without tries there is no word of them:
    so it was before they were kept."""
    fields = entry._replace(due=float(entry.due), first_seen=float(entry.first_seen))
    return json.dumps(fields if entry.tries else fields[:-1])


def entry_of(fields: Sequence[Any]) -> Entry:
    """The row of such a text, read as JSON."""
    position, place, *rest = fields
    entry = Entry(position, Place(place), *rest[:_PLAIN])
    return entry._replace(tries=tuple(Try(*each) for each in rest[_PLAIN])) if len(rest) > _PLAIN else entry


def rounds(changes: Sequence[Change]) -> list[list[int]]:
    """Indexes of changes, in rounds in which each position is changed once."""
    turns: list[list[int]] = []
    seen: dict[int, int] = {}
    for index, (_, after) in enumerate(changes):
        turn = seen[after.position] = seen.get(after.position, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(index)
    return turns
