"""Intake: a pushed flight becomes items, each in the flow of its kind or on its way back with the reason.

The flow of a kind is looked up once and remembered, with what its gate says; so an item costs one look-up.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import repeat

from msgspec.structs import replace

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, DroppedBy, Flight, Kind
from .dispatch import wake
from .limits import Limits
from .returns import HELD, Returns, ended
from .roster import Roster, RosterFunction
from .rules.explain import Reason
from .rules.flow import ATTEMPT, EXTRA, FLOW, KIND, SESSION, Flow, Item
from .rules.gate import DROP, Gates, sentence
from .sessions import TailerSession

#: Flows, and kinds whose way is known, that are remembered although nothing of them waits.
IDLE_FLOWS = 1 << 17
#: Seconds between two looks for place where a quota has limits for as many tenants as it may, since each looks at all
#: flows.
CROWDED = 10.0


class Intake:
    """The way in of pushed flights. Invariant: a remembered route leads to a flow whose gate is open."""

    def __init__(self, roster: Roster, returns: Returns, limits: Limits, lane_items: int) -> None:
        self.roster = roster
        self._returns = returns
        self._limits = limits
        self._lane_items = lane_items
        self._routes: dict[Kind, Flow] = {}
        self._turned_away: list[Item] = []
        self._most_flows = IDLE_FLOWS
        self._look_at = -math.inf
        self.gates = Gates()

    def items(self, tailer: TailerSession, flight: Flight, flows: Iterable[Flow | None] = repeat(None)) -> list[Item]:
        """A flight's columns as items, with the flows that they come in by."""
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
                flows,
                strict=False,  # what is repeated has no end
            )
        )

    def admit(self, tailer: TailerSession, flight: Flight, now: float) -> None:  # noqa: PLR0912 - the hot path
        """Puts the items of a flight into their flows; those that meet a gate or that no function is known for go
        back."""
        routes, kinds = self._routes, flight.kinds
        flows = list(map(routes.get, kinds))
        if None in flows:
            if len(routes) >= IDLE_FLOWS:
                routes.clear()
            for kind in {kind for kind in kinds if kind not in routes}:
                self._route(kind, now)
            flows = list(map(routes.get, kinds))
        if self.gates.sources and tailer.name in self.gates.sources:
            flows = [None] * len(kinds)
        items = self.items(tailer, flight, flows)
        if flight.extras:
            if any(extra.alone or extra.again or extra.refused for extra in flight.extras.values()):
                items = self._set_apart(items, now)
                flows = [item[FLOW] for item in items]
            for index, extra in flight.extras.items():
                if extra.expires_at and (flow := routes.get(kinds[index])) is not None:
                    flow.dated = flow.function.dated = True
        if self._limits.charges.anything and max(flight.attempts) > 1:
            items = [self._retried(item, now) for item in items]
            flows = [item[FLOW] for item in items]
        for item, flow in zip(items, flows, strict=True):
            if flow is None:
                self._turned_away.append(item)
                continue
            flow.items.append(item)
            if not flow.queued and (able := flow.function.able) is not None:  # as `wake` does
                flow.queued = True
                able.fresh.append(flow)
        if self._turned_away:
            self._turn_away()

    @property
    def knows_tenants(self) -> bool:
        """Whether items of a tenant came."""
        return any(kind.tenant for kind in self._routes)

    def flows(self, kinds: Iterable[Kind]) -> list[Flow]:
        """The flows of items of these kinds that were pushed."""
        return [flow for kind in set(kinds) if (flow := self._routes.get(kind)) is not None]

    def _retried(self, item: Item, now: float) -> Item:
        """The item, in the flow of its kind's retries if it is one and its function has a budget of them."""
        flow = item[FLOW]
        if item[ATTEMPT] == 1 or flow is None or self._limits.charges.budget(flow.kind.function) is None:
            return item
        flow = self._limits.flow(flow.function, item[KIND], now, again=True)
        flow.dated = flow.dated or item[EXTRA] is not None
        return (*item[:FLOW], flow)

    def put(self, item: Item, now: float) -> None:
        """Puts an item last in its flow, whatever stands before its function."""
        function = self.roster.functions[item[KIND].function].part(item)
        flow = self._limits.flow(function, item[KIND], now)
        flow.items.append((*item[:FLOW], flow))
        if item[EXTRA] is not None:
            flow.dated = self.roster.functions[item[KIND].function].dated = True
        wake(flow)

    def _set_apart(self, items: list[Item], now: float) -> list[Item]:
        """Puts items that must run alone into flows of their own, and lost ones before all others; returns the rest."""
        rest: list[Item] = []
        first: defaultdict[Flow, list[Item]] = defaultdict(list)
        for item in items:
            extra = item[EXTRA]
            if extra is None or item[FLOW] is None or not (extra.alone or extra.again or extra.refused):
                rest.append(item)
            elif extra.again:
                function = item[FLOW].function.part(item)
                flow = self._limits.flow(function, item[KIND], now)
                first[flow].append((*item[:FLOW], flow))
            else:
                self.put(item, now)
        for flow, group in first.items():
            flow.put_back(group)
            if flow.dated:
                self.roster.functions[flow.kind.function].dated = True
            wake(flow)
        return rest

    def check_bounds(self, kinds: Iterable[Kind]) -> None:
        """Sends back items that do not fit into the lanes of these kinds, first those that came last in the longest
        flow of the tenant that has most: what is blocked fills nothing that others need."""
        for name, priority in {(kind.function, kind.priority) for kind in kinds}:
            function = self.roster.functions.get(name)
            for part in function.parts if function is not None else ():
                flows = [flow for flow in part.flows.values() if flow.rank == priority]
                over = sum([len(flow.items) for flow in flows]) - self._lane_items
                while over > 0:
                    held = Counter([item[KIND].tenant for flow in flows for item in flow.items])
                    tenant, most = held.most_common(1)[0]
                    places = {
                        flow: at
                        for flow in flows
                        if (at := [place for place, item in enumerate(flow.items) if item[KIND].tenant == tenant])
                    }
                    longest, at = max(places.items(), key=lambda each: len(each[1]))
                    share = self._lane_items // len(held)
                    cut = at[-min(over, most - share, len(at) - share // len(places)) :]
                    out = [longest.items.pop(place) for place in reversed(cut)]
                    over -= len(out)
                    self._returns.end(out, HELD[Reason.LANE_FULL])

    def put_back(self, items: list[Item]) -> None:
        """Puts items that were picked but never sent first in their flows again, in their order."""
        flows: defaultdict[Flow, list[Item]] = defaultdict(list)
        now = self._limits.now
        for item in items:
            if self.gates.of(item[KIND], item[SESSION].name) is not None:
                self._turned_away.append(item)
            else:
                function = self.roster.functions[item[KIND].function].part(item)
                flow = self._limits.flow(function, item[KIND], now, again=item[FLOW].again)
                flows[flow].append(item if item[FLOW] is flow else (*item[:FLOW], flow))
        for flow, group in flows.items():
            flow.put_back(group)
            if flow.dated:
                self.roster.functions[flow.kind.function].dated = True
            wake(flow)
        self._turn_away()

    def shut(self, gates: Gates) -> None:
        """Replaces the gates: items that wait behind a closed one go back."""
        self.gates = gates
        self._routes.clear()
        for function in self.roster.functions.values():
            for room in function.rooms:
                if room.items:
                    self._turned_away += room.remove(lambda item: gates.of(item[KIND], item[SESSION].name) is not None)
        self._turn_away()

    def _route(self, kind: Kind, now: float) -> None:
        """Finds where items of a kind go, and remembers it, unless they do not go into a flow."""
        function = self.roster.functions.get(kind.function)
        if function is None or not 0 <= kind.priority < function.levels or self.gates.of(kind) is not None:
            return
        if function.frozen:
            return
        self._routes[kind] = self._limits.flow(function, kind, now)

    def forget_routes(self) -> None:
        """Forgets where items go: a function froze or thawed, or other labels tell flows apart."""
        self._routes.clear()

    def tick(self, now: float) -> None:
        """Forgets flows that nothing waits in where they are too many, or where tenants want limits of their own; and
        with them the ways that lead to them."""
        crowded = bool(self._limits.charges.crowded) and now >= self._look_at
        if self._limits.remembered > self._most_flows:
            self._routes.clear()
            self._most_flows = max(IDLE_FLOWS, 2 * self._limits.sweep(now))  # in vain at most as often as they double
        elif crowded:
            self._look_at = now + CROWDED
            self._routes.clear()
            self._limits.sweep(now, crowded=True)

    def _meet_outage(self, function: RosterFunction, items: list[Item]) -> None:
        """Takes items of a frozen function: those that pass all the same go into their lanes, the others ask to be the
        next probe. Only the newest of each session does: the others it pushed before it heard of the freeze."""
        for item in items:
            if item[SESSION].through_outages:
                self.put(item, self._limits.now)
            else:
                function.asking.items.append(item)
        newest = {item[SESSION]: item for item in function.asking.items}
        if len(newest) < len(function.asking):
            late = function.asking.remove(lambda item: newest[item[SESSION]] is not item)
            function.asking.items[:] = newest.values()  # each where its session asked first: it keeps its turn
            self._returns.end(late, HELD[Reason.OUTAGE])
        self._returns.end(function.asking.overflow(self._lane_items), HELD[Reason.OUTAGE])

    def _turn_away(self) -> None:
        """Ends items that met a gate as that says. Items of a frozen function meet its outage; those that no function
        is known for go back."""
        if not self._turned_away:
            return
        away, self._turned_away = self._turned_away, []
        kinds: defaultdict[tuple[Kind, str], list[Item]] = defaultdict(list)
        for item in away:
            kinds[item[KIND], item[SESSION].name].append(item)
        for (kind, source), items in kinds.items():
            gate = self.gates.of(kind, source)
            function = self.roster.functions.get(kind.function)
            if gate is None and function is not None and function.frozen and 0 <= kind.priority < function.levels:
                self._meet_outage(function, items)
            elif gate is None:
                self._returns.end(items, HELD[Reason.NO_WORKER])
            elif gate.action == DROP:
                end = ended(Outcome.DROPPED, Reason.DROPPED, sentence(gate))
                self._returns.end(items, replace(end, dropped_by=DroppedBy(gate.version, gate.who, gate.why)))
            else:
                self._returns.end(items, HELD[Reason.PAUSED])
