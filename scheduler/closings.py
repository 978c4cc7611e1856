"""Closings: the flows that are closed to the tailers because a limit keeps them waiting (rules/closing.py).

Looked at with each tick, never on the way of an item. What goes back costs no attempt.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.demand import Closed
from ..model.outcome import Outcome
from ..model.workload import Ended
from .returns import HELD, Returns
from .rules.closing import MOST_CLOSED, closes, kept, opens
from .rules.explain import limit_hold, limit_reason
from .rules.flow import SESSION, Flow
from .sleep import Sleep

#: Seconds that retries beyond their budget rest in their source, at most.
LONGEST_BACK = 30.0


class Closings:
    """Closed flows. Invariant: `closed` names exactly the flows that are marked so, at most MOST_CLOSED."""

    def __init__(self, sleep: Sleep, returns: Returns) -> None:
        self._sleep = sleep
        self._returns = returns
        self._closed: dict[Flow, Closed] = {}
        self._seen: dict[Flow, None] = {}  # had too much at the last look: only what still has is closed

    @property
    def closed(self) -> Mapping[Flow, Closed]:
        """What is closed, by flow."""
        return self._closed

    def review(self, now: float, wall: float) -> bool:
        """Closes and opens; whether anything changed."""
        opened = [flow for flow in self._closed if opens(flow, kept(flow), now)]
        for flow in opened:
            flow.closed = 0.0
            del self._closed[flow]
        seen, self._seen = self._seen, {}
        changed = bool(opened)
        for flow in self._sleep.blocked:
            reach = kept(flow)
            if flow.function.alone is None or not closes(flow, reach):
                continue
            if flow.again:
                self._send_back(flow, reach, now)
            elif flow not in seen:
                self._seen[flow] = None
            elif len(self._closed) < MOST_CLOSED:
                self._close(flow, reach, now, wall)
                changed = True
        return changed

    def _send_back(self, flow: Flow, reach: int, now: float) -> None:
        """Retries beyond what their budget lets start soon rest in their source for a while. Their cell stays open: it
        is that of first attempts, too."""
        limit = flow.asleep
        assert limit is not None
        late = {id(item) for item in flow.items[reach:] if not item[SESSION].patient}
        back = flow.remove(lambda item: id(item) in late)
        after = min(LONGEST_BACK, max(1.0, reach / max(limit.rate, 1.0)))
        self._returns.end(back, Ended(Outcome.HELD, limit_reason(limit).value, after))

    def _close(self, flow: Flow, reach: int, now: float, wall: float) -> None:
        limit = flow.asleep
        assert limit is not None
        kind = flow.kind
        reason = limit_hold(flow, limit, now)
        self._closed[flow] = Closed(
            kind.function, kind.collection, kind.tenant, reason, since=wall, priority=kind.priority, exact=True
        )
        flow.closed = now
        late = {id(item) for item in flow.items[reach:] if not item[SESSION].patient}
        back = flow.remove(lambda item: id(item) in late)
        self._returns.end(back, HELD[limit_reason(limit)])
