"""The port for a queue as a whole: how much is in it, and how old that is."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Tally(NamedTuple):
    """Items counted by state. `taken` is how many items there were when the store was opened and how many were
    submitted since, `forgotten` how many of them the retention removed; `states` counts the rows by the state's name.
    What was taken and not forgotten is to be in one state."""

    taken: int
    forgotten: int
    states: dict[str, int]


class Ageing(NamedTuple):
    """The age of the work of one function at one priority. `waited`: seconds since its oldest item that could be leased
    now was due, by the store's clock; 0: none is due. `attempts`: the most that a live item of it has spent."""

    function: str
    priority: int
    waited: float
    attempts: int


class QueueCounts(Protocol):
    """Numbers for audits, overviews and lag. All are read, none is kept."""

    async def tally(self) -> Tally:
        """What an audit needs, counted row by row: takes long with many items, but holds up nobody."""

    async def counts(self) -> dict[str, int]:
        """How many items are in each state, by the state's name."""

    async def due(self, most: int) -> dict[str, int]:
        """How many items could be leased now, by function, counting at most `most` of one function, priority and
        collection; functions without any are left out."""

    async def ageing(self) -> list[Ageing]:
        """The oldest due item and the highest attempt of each function and priority, in no order; those without either
        are left out. Writes nothing, and looks at two ends of an index for each lane, however much waits. What is out
        is not due; an item that came back as lost is due as long as the first of its lane then was."""
