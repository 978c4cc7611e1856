"""Flow: the items of one ⟨function, priority, collection, tenant⟩ that wait. They pay the same charges, so one look
decides for all of them (FL1).

An item is one tuple, made and undone by `zip`. Nothing here looks at one item alone unless somebody cancels, revokes,
gates or expires it, which is rare and may scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...model.workload import Extra, Kind
from .cost import Metered
from .limit import Limit
from .reserve import Reserve
from .unit_limit import NONE_YET, UnitLimit

#: (session, ref in that session, id, payload, kind, attempt, fence, extra, flow). The session is opaque to the rules;
#: the flow is the one that it came in by, None before that.
Item = tuple[Any, int, str, bytes, Kind, int, int, Extra | None, Any]

SESSION: Final = 0
REF: Final = 1
ID: Final = 2
PAYLOAD: Final = 3
KIND: Final = 4
ATTEMPT: Final = 5
EXTRA: Final = 7
FLOW: Final = 8


class Room:
    """Items that wait in order. Invariants: first in, first out, but what was put back is before all others; `dated` is
    true whenever an item with an expiry waits here (it may stay true a while longer)."""

    dated = False

    def __init__(self) -> None:
        self.items: list[Item] = []

    def __len__(self) -> int:
        return len(self.items)

    def overflow(self, bound: int) -> list[Item]:
        """Takes out the items beyond the bound, which came last, the newest first."""
        over = self.items[bound:]
        del self.items[bound:]
        over.reverse()
        return over

    def take(self, count: int) -> list[Item]:
        """The first `count` items, or all there are."""
        items = self.items
        taken = items[:count]
        if len(taken) == len(items):
            items.clear()
            self.dated = False
        else:
            del items[:count]
        return taken

    def put_back(self, items: list[Item]) -> None:
        """Puts items first again, in their order, that had their turn and did not leave, or were lost."""
        self.items[:0] = items
        self.dated = self.dated or any(item[EXTRA] is not None and item[EXTRA].expires_at for item in items)

    def remove(self, gone: Callable[[Item], bool]) -> list[Item]:
        """Takes out every item that is `gone`; the others keep their order."""
        taken = [item for item in self.items if gone(item)]
        if taken:
            self.items[:] = [item for item in self.items if not gone(item)]
        return taken


class Flow(Room, Metered):
    """One flow. `function` is opaque to the rules. What most flows never have is kept by the class until they do.

    charges   the limits that each of its items pays, resolved once (FL1)
    queued    it has its place: it is new, in turns, or asleep on a limit; what arrives needs to wake nobody
    asleep    the limit that it sleeps on
    woken_by  the sleepers that it left when its limit had room, until it was tried
    share     how many it may start when it is tried, having been woken
    reserves  when it began to reserve its limits; 0: it does not
    since     when it could first not start although it had its turn; 0: it is not kept waiting by a limit
    v         its virtual time among the flows of its function and rank: cost charged, by weight (FL8)
    weight    of its tenant
    own       the weight is the tenant's in this function alone: it is not divided among the functions it uses (FL7)
    again     of retries alone, which pay their budget (FL15)
    closed    its cell is closed to the tailers (FL10)
    reserves_of  the reserves that it may use (FL18)
    measured  the unit limits that each of its items pays (FL20)
    averages  what the runs of its function used of units, on average
    """

    dated = False
    queued = False
    asleep: Limit | None = None
    woken_by: Any = None
    share = 0
    since = 0.0
    reserves = 0.0
    v = 0.0
    weight = 1.0
    own = False
    again = False
    closed = 0.0
    reserves_of: tuple[Reserve, ...] = ()
    measured: tuple[UnitLimit, ...] = ()
    averages: Mapping[tuple[str, str], float] = NONE_YET

    def __init__(self, function: Any, kind: Kind, charges: tuple[Limit, ...] = ()) -> None:
        self.items = []
        self.function = function
        self.kind = kind
        self.rank = kind.priority
        self.charges = charges


def expired(item: Item, wall: float) -> bool:
    """Whether an item's time to start has passed. `wall` is wall clock seconds."""
    extra = item[EXTRA]
    return extra is not None and 0 < extra.expires_at <= wall
