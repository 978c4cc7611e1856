"""Crowding: tenants whose items wait for pools that are busy, and take all of a session's credit, while other pools
idle: what others have for those stays in its source (head-of-line blocking). Each keeps what leaves the others some
room (model/shared_room.py), the rest goes back, and such items are closed to the session until half of what was kept
has started, or for a while.

A session is looked at with each tick, and only acted upon if it had no room left and pushed nothing since the last one:
where credit turns over, whoever is next gets its place by the turns of the claims.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ..model.demand import Closed
from ..model.shared_room import room_left
from .intake import Intake
from .returns import HELD, Returns
from .roster import Roster
from .rules.closing import LOOK_AGAIN, MOST_CLOSED
from .rules.explain import Reason
from .rules.flow import KIND, REF, SESSION, Item
from .rules.placement import room_of
from .sessions import TailerSession
from .shares import Shares

REASON = "as much of its tenant waits in the scheduler, for busy workers, as leaves room for other tenants"
NOTHING: frozenset[Closed] = frozenset()


class _Crowd(NamedTuple):
    """The cells closed to a session, how many items each tenant kept that crowded others out, and when it opens."""

    closed: frozenset[Closed]
    kept: Mapping[str, int]
    until: float


class Crowding:
    """The tenants that crowd others out of a session. Invariant: `_crowds` is of sessions that are known."""

    def __init__(
        self,
        roster: Roster,
        shares: Shares,
        intake: Intake,
        returns: Returns,
        tailers: Mapping[str, TailerSession],
    ) -> None:
        self._roster = roster
        self._shares = shares
        self._intake = intake
        self._returns = returns
        self._tailers = tailers
        self._full: dict[TailerSession, int] = {}  # sessions without room → the last flight of each
        self._crowds: dict[TailerSession, _Crowd] = {}

    def closed(self, tailer: TailerSession) -> frozenset[Closed]:
        """The cells that are closed to a session."""
        return self._crowds[tailer].closed if tailer in self._crowds else NOTHING

    def look(self, total: int, now: float, wall: float) -> bool:
        """Makes room in sessions that may have `total` items out each, and opens again. Returns whether cells
        changed."""
        here = [tailer for tailer in self._tailers.values() if not tailer.patient]
        full = {each: each.held.last_flight for each in here if each.held.items > total - (total >> 4)}
        former, self._full = self._full, full
        stuck = [tailer for tailer, last in full.items() if former.get(tailer) == last and tailer not in self._crowds]
        if not stuck and not self._crowds:
            return False
        before = dict(self._crowds)
        self._crowds = {each: crowd for each, crowd in before.items() if each in here and self._lasts(each, crowd, now)}
        if stuck and self._idle():
            for tailer in stuck:
                self._make_room(tailer, total, now, wall)
        return self._crowds != before

    def _lasts(self, tailer: TailerSession, crowd: _Crowd, now: float) -> bool:
        waiting = Counter(item[KIND].tenant for item in self._waiting(tailer))
        return now < crowd.until and all(waiting[tenant] > kept // 2 for tenant, kept in crowd.kept.items())

    def _waiting(self, tailer: TailerSession) -> list[Item]:
        return [item for flow in self._shares.waiting() for item in flow.items if item[SESSION] is tailer]

    def _idle(self) -> bool:
        """Whether some pools could run what does not wait here."""
        ables = {function.able for function in self._roster.functions.values()}
        return any(able and not able.fresh and not able.turns.size and room_of(able.pools) for able in ables)

    def _make_room(self, tailer: TailerSession, total: int, now: float, wall: float) -> None:
        waiting = self._waiting(tailer)
        of_tenants: defaultdict[str, list[Item]] = defaultdict(list)
        for item in waiting:
            of_tenants[item[KIND].tenant].append(item)
        if not any(of_tenants) and not self._intake.knows_tenants:
            return
        kept: dict[str, int] = {}
        back: set[int] = set()
        closed: dict[tuple[str, str], Closed] = {}
        for tenant, items in of_tenants.items():
            keep = room_left(0, len(waiting) - len(items), total - tailer.held.items + len(waiting))
            if len(items) <= keep:
                continue
            kept[tenant] = keep
            items.sort(key=lambda item: item[REF])
            back.update(map(id, items[keep:]))
            for function, priority in sorted({(item[KIND].function, item[KIND].priority) for item in items}):
                if len(closed) < MOST_CLOSED:  # of a function the first rank, which closes those below it
                    closed.setdefault((function, tenant), _cell(function, priority, tenant, wall))
        for flow in list(self._shares.waiting()):
            if out := flow.remove(lambda item: id(item) in back):
                self._returns.end(out, HELD[Reason.TURN])
        if kept:
            self._crowds[tailer] = _Crowd(frozenset(closed.values()), kept, now + LOOK_AGAIN)


def _cell(function: str, priority: int, tenant: str, wall: float) -> Closed:
    """A tenant's items of a function; without a tenant, those that have none."""
    none = not tenant
    return Closed(function, "", tenant, REASON, since=wall, priority=priority, exact=none, all_collections=none)
