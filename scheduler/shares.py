"""Shares: which flows have more waiting here than is worth it while others take turns with them, and how much credit a
function needs so that turns have a choice (rules/share.py). Looked at a few times a second, never on the way of an
item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from .limits import Limits
from .roster import Able, Roster, RosterFunction
from .rules.flow import Flow
from .rules.share import FEWEST, FLOWS, LEAST, LOOK, FlowPace, choice, crowds, paced, part, worth


class Shares:
    """The parts of flows that compete for the same pools. Invariant: `parts` names flows of the last look, and how many
    items of each may wait here; also of one that waits alone, so that there is room for the first item of another.

    bound   items for which there is credit beyond what workers hold, at most
    """

    def __init__(self, roster: Roster, limits: Limits, bound: int) -> None:
        self.parts: dict[Flow, int] = {}
        self._roster = roster
        self._limits = limits
        self._bound = bound
        self._paces: dict[Flow, FlowPace] = {}
        self._looked_at = 0.0
        self._look_at = 0.0
        self._least = LEAST  # items of a flow that is looked at

    def due(self, now: float) -> bool:
        """Whether it is time for a look: where costs are counted turns matter, and items that limits keep waiting hold
        credit that others need, also while slots are idle."""
        limits = self._limits
        return now >= self._look_at and (limits.metering or bool(self.parts) or bool(limits.sleep.blocked))

    def look(self, now: float) -> bool:
        """Looks at all flows with waiting items, and corrects their charges. Returns whether a function needs other
        credit."""
        former, self._paces, self.parts = self._paces, {}, {}
        seconds, self._looked_at = now - self._looked_at, now
        wanted: defaultdict[RosterFunction, float] = defaultdict(float)
        seen, competing = self._competing(former, wanted, now)
        for flows in competing.values():
            paces = {flow: paced(former.get(flow), flow.ended, seconds) for flow in flows}
            self._paces |= paces
            self._divide(paces, former, wanted)
        self._look_at = now + LOOK * max(1.0, seen / FLOWS)
        self._least = FEWEST if crowds(sum(wanted.values()), self._bound) else LEAST
        changed = False
        for function in self._roster.functions.values():
            if function.choice or function in wanted:
                needed = choice(wanted.get(function, 0.0), function.choice, self._bound)
                changed = changed or needed != function.choice
                function.choice = needed
        return changed

    def _divide(
        self, paces: dict[Flow, FlowPace], known: Collection[Flow], wanted: defaultdict[RosterFunction, float]
    ) -> None:
        """Divides the number of items that may wait among flows; those that are not known since the last look are left
        as they are."""
        together = sum([pace.rate for pace in paces.values()])
        worths = {flow: worth(pace.rate, together, len(paces)) for flow, pace in paces.items()}
        whole = sum(worths.values())
        for flow, own in worths.items():
            wanted[flow.function] += own
            if flow in known:
                self.parts[flow] = part(own, whole, self._bound)

    def _competing(
        self, former: dict[Flow, FlowPace], wanted: defaultdict[RosterFunction, float], now: float
    ) -> tuple[int, dict[Able, dict[Flow, None]]]:
        """Flows of which much waits, and those that were looked at before and ran since, by the pools that they compete
        for; and how many flows there are in all. Of the others, which may be very many, nothing is to be closed."""
        found: defaultdict[Able, dict[Flow, None]] = defaultdict(dict)
        settle, metering, seen = self._limits.settle, self._limits.metering, 0
        for flow in self.waiting():
            seen += 1
            if metering and (flow.running or flow.ended > flow.counted):
                settle(flow, now)
            if len(flow.items) < self._least and flow not in former:
                wanted[flow.function] += len(flow.items)
            elif flow.function.alone is not None and flow.function.able is not None:
                found[flow.function.able][flow] = None
        for flow, pace in former.items():
            if metering and flow.function.able is not None and (flow.running or flow.ended > pace.ended):
                found[flow.function.able][flow] = None
        return seen, found

    def waiting(self) -> Iterable[Flow]:
        """The flows that wait, for a turn or behind a limit."""
        for able in self._roster.ables:
            yield from able.turns.waiting
            yield from able.idle.waiting
        yield from self._limits.sleep.blocked
