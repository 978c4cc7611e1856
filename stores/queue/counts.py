"""The port for a queue as a whole: how much is in it, and how old its waiting work is."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Tally(NamedTuple):
    """Items counted by state. `taken`: the items that were there when the store was opened, and all that were submitted
    since. `forgotten`: the ended ones among them that the retention removed. `states`: rows by the state's name. Each
    item taken and not forgotten has to be in exactly one state."""

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


class Held(NamedTuple):
    """The room for items that have not ended: `most` of them, `live` that are there, and how many of these each tenant
    has that wait, about; empty while less than half of the room is taken, or where no item was ever of a tenant."""

    most: int
    live: int
    tenants: dict[str, int]


class QueueCounts(Protocol):
    """Numbers for audits, overviews and lag. Each is read when asked for; none is stored."""

    async def tally(self) -> Tally:
        """Counts row by row for an audit. Takes long with many items, but delays no other call."""

    async def counts(self) -> dict[str, int]:
        """Number of items in each state, by the state's name."""

    async def held(self) -> Held:
        """The room for items that have not ended, and who has it. May take a second beyond half of it."""

    async def due(self, most: int) -> dict[str, int]:
        """Number of items that could be leased now, by function. Counts at most `most` items of one function, priority
        and collection; functions without any are left out."""

    async def ageing(self) -> list[Ageing]:
        """Returns the oldest due item and the highest attempt of each function and priority, in no order; those with
        neither are left out. Writes nothing, and reads two ends of an index for each lane, however much waits. A leased
        item is not due; an item that came back as lost counts as due since the time at which the first of its lane was
        due then."""
