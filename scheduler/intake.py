"""Intake: a pushed flight becomes items, each in the lane of its kind or on its way back with the reason.

The lane of a kind is looked up once and remembered, with what its gate says; so an item costs one look-up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import repeat

from msgspec.structs import replace

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, DroppedBy, Flight, Kind
from .dispatch import wake
from .returns import HELD, Returns, ended
from .roster import Roster, RosterFunction
from .rules.explain import Reason
from .rules.gate import DROP, Gates, sentence
from .rules.lanes import EXTRA, KIND, SESSION, Item, Lane
from .sessions import TailerSession

#: Kinds whose lane is remembered; beyond it all are looked up anew.
ROUTES = 1 << 17


class Intake:
    """The way in of pushed flights. Invariant: a remembered route leads to a lane whose gate is open."""

    def __init__(self, roster: Roster, returns: Returns) -> None:
        self._roster = roster
        self._returns = returns
        self._routes: dict[Kind, tuple[Callable[[Item], None], RosterFunction]] = {}
        self._turned_away: list[Item] = []
        self.gates = Gates()

    def items(self, tailer: TailerSession, flight: Flight) -> list[Item]:
        """A flight's columns as items."""
        size = len(flight.ids)
        base = flight.number << INDEX_BITS
        return list(
            zip(
                repeat(tailer, size),
                range(base, base + size),
                flight.ids,
                flight.payloads,
                flight.kinds,
                flight.attempts,
                repeat(flight.fence, size),
                map(flight.extras.get, range(size)) if flight.extras else repeat(None, size),
                strict=True,
            )
        )

    def admit(self, items: list[Item], flight: Flight) -> None:
        """Puts items into their lanes; those that meet a gate or that no function is known for go back."""
        routes, kinds = self._routes, flight.kinds
        if flight.extras and any(extra.alone or extra.again for extra in flight.extras.values()):
            items = self._set_apart(items)
            kinds = [item[KIND] for item in items]
        for item, kind in zip(items, kinds, strict=True):
            try:
                put, function = routes[kind]
            except KeyError:
                route = self._route(kind)
                if route is None:
                    self._turned_away.append(item)
                    continue
                put, function = route
            put(item)
            if not function.waits:
                wake(function)
        for index, extra in flight.extras.items():
            if extra.expires_at:
                kind = flight.kinds[index]
                known = self._roster.functions.get(kind.function)
                if known is not None and kind in routes:
                    known.lanes[kind.priority].dated = True
        self._turn_away()

    def _set_apart(self, items: list[Item]) -> list[Item]:
        """Puts what must run alone into its own lanes, and what was lost before all others; returns the rest."""
        rest: list[Item] = []
        functions: dict[RosterFunction, None] = {}
        first: defaultdict[Lane, list[Item]] = defaultdict(list)
        for item in items:
            extra = item[EXTRA]
            if extra is None or not (extra.alone or extra.again):
                rest.append(item)
                continue
            route = self._route(item[KIND])
            if route is None:
                self._turned_away.append(item)
                continue
            function = route[1]
            if extra.again:
                first[function.lane(item)].append(item)
            else:
                function.put(item)
            functions[function] = None
        for lane, group in first.items():
            lane.put_back(group)
        for function in functions:
            wake(function)
        return rest

    def check_bounds(self, kinds: Iterable[Kind]) -> None:
        """What does not fit into the lanes of these kinds goes back."""
        for name, priority in {(kind.function, kind.priority) for kind in kinds}:
            function = self._roster.functions.get(name)
            for each in (function, function.alone) if function is not None else ():
                if each is not None and 0 <= priority < len(each.lanes):
                    self._returns.end(each.lanes[priority].overflow(), HELD[Reason.LANE_FULL])

    def put_back(self, items: list[Item]) -> None:
        """Items that were picked but never sent are first in their lanes again, in their order."""
        lanes: defaultdict[Lane, list[Item]] = defaultdict(list)
        functions: dict[RosterFunction, None] = {}
        for item in items:
            kind = item[KIND]
            if self.gates.of(kind) is not None:
                self._turned_away.append(item)
            else:
                function = self._roster.functions[kind.function]
                functions[function] = None
                lanes[function.lane(item)].append(item)
        for lane, group in lanes.items():
            lane.put_back(group)
        for function in functions:
            wake(function)
        self._turn_away()

    def shut(self, gates: Gates) -> None:
        """Other gates from now on: items that wait behind a closed one go back."""
        self.gates = gates
        self._routes.clear()
        for function in self._roster.functions.values():
            for lane in function.rooms:
                self._turned_away += lane.remove(lambda item: gates.of(item[KIND]) is not None)
        self._turn_away()

    def _route(self, kind: Kind) -> tuple[Callable[[Item], None], RosterFunction] | None:
        """Where items of a kind go; None: not into a lane."""
        function = self._roster.functions.get(kind.function)
        if function is None or not 0 <= kind.priority < len(function.lanes) or self.gates.of(kind) is not None:
            return None
        if function.frozen:
            return None
        if len(self._routes) >= ROUTES:
            self._routes.clear()
        route = self._routes[kind] = (function.lanes[kind.priority].items.append, function)
        return route

    def forget_routes(self) -> None:
        """A function froze or thawed: its items take another way from now on."""
        self._routes.clear()

    def _meet_outage(self, function: RosterFunction, items: list[Item]) -> None:
        """Items of a frozen function: those that pass all the same go into their lanes, the others ask to be the next
        probe. Only the newest of each session does: the others it pushed before it heard of the freeze."""
        for item in items:
            if item[SESSION].through_outages:
                function.put(item)
            else:
                function.asking.items.append(item)
        newest = {item[SESSION]: item for item in function.asking.items}
        if len(newest) < len(function.asking):
            late = function.asking.remove(lambda item: newest[item[SESSION]] is not item)
            self._returns.end(late, HELD[Reason.OUTAGE])
        self._returns.end(function.asking.overflow(), HELD[Reason.OUTAGE])
        wake(function)

    def _turn_away(self) -> None:
        """Items that met a gate end as it says; those that no function is known for go back."""
        if not self._turned_away:
            return
        away, self._turned_away = self._turned_away, []
        kinds: defaultdict[Kind, list[Item]] = defaultdict(list)
        for item in away:
            kinds[item[KIND]].append(item)
        for kind, items in kinds.items():
            gate = self.gates.of(kind)
            function = self._roster.functions.get(kind.function)
            if gate is None and function is not None and function.frozen and 0 <= kind.priority < len(function.lanes):
                self._meet_outage(function, items)
            elif gate is None:
                self._returns.end(items, HELD[Reason.NO_WORKER])
            elif gate.action == DROP:
                end = ended(Outcome.DROPPED, Reason.DROPPED, sentence(gate))
                self._returns.end(items, replace(end, dropped_by=DroppedBy(gate.version, gate.who, gate.why)))
            else:
                self._returns.end(items, HELD[Reason.PAUSED])
