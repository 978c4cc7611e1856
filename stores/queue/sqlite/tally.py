"""A count of all rows of the queue by state for an audit, in small steps, so that no other call waits long for the
writer.

Rows are counted in the order of their ids, which rise, so items that are submitted meanwhile are still to be counted. A
row counts in the state that it has at that moment. Rows that the retention removes after they were counted do not count
as forgotten in this tally.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from ....model.claim import State
from ..queue import Tally
from .memory import SUMS, Memory, RowCount
from .rows import IDS, json_text

#: Rows counted in one step of the writer.
STEP = 10_000


class Count:
    """One count, in steps of the writer thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._counting = RowCount()
        self._states: Counter[State] = Counter()
        self._found: Tally | None = None

    def step(self, connection: sqlite3.Connection) -> bool:
        """Counts some more rows; returns True when all are counted."""
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
        """The result; None: the count must start again."""
        return None if self._counting.begins_again else self._found


def count_due(connection: sqlite3.Connection, lanes: Sequence[int], now: int, most: int) -> dict[str, int]:
    """Number of due items of these lanes by function, counting at most `most` of each lane."""
    rows = connection.execute(
        "SELECT l.function, (SELECT count(*) FROM (SELECT 1 FROM tasks WHERE lane = l.lane"
        f" AND next_trigger <= ? LIMIT ?)) FROM lanes l WHERE l.lane IN {IDS}",
        (now, most, json_text(lanes)),
    ).fetchall()
    found: Counter[str] = Counter()
    for function, number in rows:
        found[function] += number
    return dict(+found)
