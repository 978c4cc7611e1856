"""Closings: the flows that are closed to the tailers because a limit keeps them waiting (rules/closing.py), or because
more waits here than is worth it while others take turns with them (rules/share.py).

Looked at with each tick and each look at shares, never on the way of an item. Items that go back spend no attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.demand import Closed
from ..model.outcome import Outcome
from ..model.workload import Ended
from .returns import HELD, Returns
from .rules.charges import Charges
from .rules.closing import MOST_CLOSED, MOST_UNCLOSED_BACK, closes, kept, opens
from .rules.explain import SENTENCES, Reason, limit_hold, limit_reason
from .rules.flow import SESSION, Flow, Item
from .rules.limit import UNLIMITED
from .rules.share import most
from .shares import Shares
from .sleep import Sleep

#: Seconds that retries beyond their budget rest in their source, at most.
LONGEST_BACK = 30.0


class Closings:
    """Closed flows. Invariants: `closed` names exactly the flows that are marked so, at most MOST_CLOSED; of those that
    found no place in it no more than MOST_UNCLOSED_BACK items went back since the last review."""

    def __init__(self, sleep: Sleep, shares: Shares, returns: Returns, charges: Charges) -> None:
        self._sleep = sleep
        self._shares = shares
        self._returns = returns
        self._charges = charges
        self._closed: dict[Flow, Closed] = {}
        self._seen: dict[Flow, None] = {}  # had too much at the last look: only what still has is closed
        self._unclosed_back = 0

    @property
    def closed(self) -> Mapping[Flow, Closed]:
        """Closed cells by flow."""
        return self._closed

    def review(self, now: float, wall: float) -> bool:
        """Closes and opens flows. Returns whether anything changed."""
        parts = self._shares.parts
        self._unclosed_back = 0
        opened = [flow for flow in self._closed if opens(flow, parts.get(flow) or kept(flow), now)]
        for flow in opened:
            flow.closed = 0.0
            del self._closed[flow]
        seen, self._seen = self._seen, {}
        changed = bool(opened)
        for flow in self._sleep.blocked:
            reach = kept(flow)
            if flow.function.alone is None or (flow in parts and not flow.again) or not closes(flow, reach):
                continue
            if flow.again:
                self._send_back(flow, reach, now)
            elif flow not in seen:
                self._seen[flow] = None
            elif len(self._closed) < MOST_CLOSED:
                self._close(flow, reach, now, wall)
                changed = True
        return self.pushed(parts, now, wall) or changed

    def pushed(self, flows: Iterable[Flow], now: float, wall: float) -> bool:
        """Closes flows of which more waits than is worth it while others take turns with them, as soon as that came, so
        that a tailer that fills its credit with it is stopped at once. Returns whether there are any."""
        parts, changed = self._shares.parts, False
        for flow in flows:
            part = parts.get(flow, UNLIMITED)
            if len(flow.items) <= part or flow.again:
                continue
            if not flow.closed and len(self._closed) < MOST_CLOSED:
                self._mark(flow, SENTENCES[Reason.TURN], now, wall)
                changed = True
            back = len(flow.items) - most(part)
            if not flow.closed:
                back = min(back, MOST_UNCLOSED_BACK - self._unclosed_back)
                self._unclosed_back += max(0, back)
            if back > 0:
                self._returns.end(_beyond(flow, len(flow.items) - back), HELD[Reason.TURN])
        return changed

    def _send_back(self, flow: Flow, reach: int, now: float) -> None:
        """Sends retries back that their budget does not let start soon: they rest in their source for a while. Their
        cell stays open: it is that of first attempts, too."""
        limit = flow.asleep
        assert limit is not None
        back = _beyond(flow, reach)
        after = min(LONGEST_BACK, max(1.0, reach / max(limit.rate, 1.0)))
        self._returns.end(back, Ended(Outcome.HELD, limit_reason(limit).value, after))

    def _close(self, flow: Flow, reach: int, now: float, wall: float) -> None:
        limit = flow.asleep
        assert limit is not None
        self._mark(flow, limit_hold(flow, limit, now), now, wall)
        self._returns.end(_beyond(flow, reach), HELD[limit_reason(limit)])

    def _mark(self, flow: Flow, reason: str, now: float, wall: float) -> None:
        kind, named = flow.kind, self._charges.labels(flow.kind)
        self._closed[flow] = Closed(
            kind.function, kind.collection, kind.tenant, reason, since=wall, priority=kind.priority, **named._asdict()
        )
        flow.closed = now


def _beyond(flow: Flow, reach: int) -> list[Item]:
    """Takes out the items behind the first `reach` ones of a flow, but for those of a patient session."""
    late = {id(item) for item in flow.items[reach:] if not item[SESSION].patient}
    return flow.remove(lambda item: id(item) in late)
