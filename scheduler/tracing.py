"""Spans of a scheduler: from the push of a sampled item until a worker is sent it, or it goes back with a reason.

What is open is kept by session and ref, as few as there are sampled items that wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..foundation.tracing import Spans, new_span_id, sampled
from ..foundation.tracing import spans as installed
from ..model import spans
from ..model.outcome import Outcome
from ..model.spans import Span, of_item
from ..model.trace_context import TraceContext, attempt_span
from ..model.workload import INDEX_BITS, Ended, Flight
from .rules.flow import REF, SESSION, Item
from .sessions import TailerSession

#: Sampled items that are remembered while they wait; the oldest is forgotten first.
MOST = 10_000


class _Waiting(NamedTuple):
    """A sampled item that waits, since `since`, wall clock seconds."""

    context: TraceContext
    id: str
    function: str
    attempt: int
    since: float


class SchedulerTracing:
    """The spans of one scheduler. Times are wall clock seconds."""

    def __init__(self, place: Spans) -> None:
        self._place = place
        self._waiting: OrderedDict[tuple[str, int], _Waiting] = OrderedDict()

    def pushed(self, tailer: TailerSession, flight: Flight, now: float) -> None:
        """Notes the sampled items of a flight that came: they wait from now on."""
        waiting, base = self._waiting, flight.number << INDEX_BITS
        for index, context in sampled(flight.extras):
            function, id = flight.kinds[index].function, flight.ids[index]
            waiting[tailer.session, base | index] = _Waiting(context, id, function, flight.attempts[index], now)
        while len(waiting) > MOST:
            waiting.popitem(last=False)

    def assigned(self, items: list[Item], indexes: Iterable[int], worker: str, now: float) -> None:
        """Ends the waits of sampled items of an assignment that is sent, at `indexes` where items carry a trace or
        more."""
        made = []
        for index in indexes if self._waiting else ():
            waiting = self._waiting.pop((items[index][SESSION].session, items[index][REF]), None)
            if waiting is not None:
                made.append(_span(waiting, {spans.WORKER: worker}, now))
        if made:
            self._place.add(made)

    def ended(self, tailer: TailerSession, ends: Mapping[int, Ended], now: float) -> None:
        """Ends the waits of items that go back to their tailer: those that were never sent have the reason for that."""
        made = []
        for ref, end in ends.items() if self._waiting else ():
            waiting = self._waiting.pop((tailer.session, ref), None)
            if waiting is not None:
                outcome = Outcome(end.outcome).name.lower()
                reason = end.reason[: spans.REASON_LENGTH]
                made.append(_span(waiting, {spans.OUTCOME: outcome, spans.REASON: reason}, now))
        if made:
            self._place.add(made)


def _span(waiting: _Waiting, said: dict[str, str], now: float) -> Span:
    context, id, function, attempt, since = waiting
    attributes = of_item(function, id) | {spans.FUNCTION: function, spans.ATTEMPT: attempt} | said
    parent = attempt_span(context, id, attempt)
    name = f"schedule {function}"
    return Span(name, spans.INTERNAL, context.trace_id, new_span_id(), parent, since, now, attributes)


def tracing() -> SchedulerTracing | None:
    """The tracing of a scheduler that is made now; None: it is off."""
    place = installed()
    return None if place is None else SchedulerTracing(place)
