"""All rows of the queue counted by state for an audit, some at a time, so that nobody waits long for the writer.

Rows are counted in the order of their ids, which rise: what is submitted meanwhile lies ahead. A row is in one state
when it is counted, whichever it is in later. What the retention removes behind the count was counted, so it is not
forgotten for this tally.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from ....model.claim import State
from ..queue import Tally
from .memory import SUMS, Memory, RowCount
from .rows import IDS, json_text

#: Rows that are counted in one step of the writer.
STEP = 10_000


class Count:
    """One count, in steps of the writer thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._counting = RowCount()
        self._states: Counter[State] = Counter()
        self._found: Tally | None = None

    def step(self, connection: sqlite3.Connection) -> bool:
        """Counts some more; whether that was all."""
        memory, counting = self._memory, self._counting
        memory.counted = counting
        if counting.begins_again:
            return True
        count, last, *sums = connection.execute(
            f"SELECT count(*), max(id), {SUMS} FROM (SELECT id, state FROM tasks WHERE id > ? ORDER BY id LIMIT ?)",
            (counting.at, STEP),
        ).fetchone()
        self._states.update(dict(zip(State, sums, strict=True)))
        if count == STEP:
            counting.at = last
            return False
        states = {state.label: self._states[state] for state in State}
        self._found = Tally(memory.taken, memory.forgotten - counting.behind, states)
        return True

    def tally(self) -> Tally | None:
        """What was found; None: it is to be counted again."""
        return None if self._counting.begins_again else self._found


def count_due(connection: sqlite3.Connection, lanes: Sequence[int], now: int, most: int) -> dict[str, int]:
    """By function, how many items of these lanes are due, up to `most` of each lane."""
    rows = connection.execute(
        "SELECT l.function, (SELECT count(*) FROM (SELECT 1 FROM tasks WHERE lane = l.lane"
        f" AND next_trigger <= ? LIMIT ?)) FROM lanes l WHERE l.lane IN {IDS}",
        (now, most, json_text(lanes)),
    ).fetchall()
    found: Counter[str] = Counter()
    for function, number in rows:
        found[function] += number
    return dict(+found)
