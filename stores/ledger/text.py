"""A row of the ledger as a text, so that two rows are compared by their texts, and floats survive exactly; and the
order in which changes of one position are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...model.tries import Try
from .ledger import Change, LedgerEntry, LedgerPlace

#: Rows whose text is remembered: the next write of a row compares with the text of the last.
REMEMBERED = 2048
_PLACES = {int(place): place for place in LedgerPlace}
_quoted = json.encoder.encode_basestring_ascii


@lru_cache(REMEMBERED)
def entry_text(entry: LedgerEntry) -> str:
    """The text of a row, in its one form: the fields as `json.dumps` writes them, made by hand in half its time. The
    tries are left out where there are none, as in rows from before they were kept."""
    position, place, n, due, attempts, crashes, throttles, fence, epoch, first_seen, tries = entry
    due, first_seen = float(due), float(first_seen)
    if (due + first_seen) * 0.0:  # nothing when both are finite, else not a number
        fields = entry._replace(due=due, first_seen=first_seen)
        return json.dumps(fields if tries else fields[:-1])
    plain = (
        f"[{position}, {int(place)}, {n}, {due!r}, {attempts}, {crashes}, {throttles}, {fence}, {epoch}, {first_seen!r}"
    )
    return f"{plain}, [{_tries_text(tries)}]]" if tries else f"{plain}]"


@lru_cache(REMEMBERED)
def _tries_text(tries: tuple[Try, ...]) -> str:
    """The text of a row's tries. It is remembered, since the tries stay in the item's row until that goes."""
    *former, (at, outcome, reason) = tries
    last = f"[{at!r}, {_quoted(outcome)}, {_quoted(reason)}]" if at * 0.0 == 0.0 else json.dumps(tries[-1])
    return f"{_tries_text(tuple(former))}, {last}" if former else last


def entry_of(fields: Sequence[Any]) -> LedgerEntry:
    """The row of a text that was read as JSON."""
    position, place, n, due, attempts, crashes, throttles, fence, epoch, first_seen, *rest = fields
    tries = tuple([Try(*each) for each in rest[0]]) if rest else ()
    return LedgerEntry(position, _PLACES[place], n, due, attempts, crashes, throttles, fence, epoch, first_seen, tries)


def rounds(changes: Sequence[Change]) -> list[list[int]]:
    """Indexes of the changes, in rounds in each of which every position is changed at most once."""
    if len({after.position for _, after in changes}) == len(changes):
        return [[*range(len(changes))]]
    turns: list[list[int]] = []
    seen: dict[int, int] = {}
    for index, (_, after) in enumerate(changes):
        turn = seen[after.position] = seen.get(after.position, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(index)
    return turns
