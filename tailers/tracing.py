"""Trace spans of the items that a tailer hands out: of sampled items only, made in batches.

Where nobody has decided yet whether an item is sampled, its id decides; the decision goes on with the item, in its
headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..foundation.tracing import Spans, new_span_id, new_trace_id, sampled
from ..foundation.tracing import spans as installed
from ..model import spans
from ..model.outcome import Outcome
from ..model.parked import Parked
from ..model.spans import Span, of_item
from ..model.trace_context import (
    TRACEPARENT,
    TraceContext,
    attempt_span,
    carries,
    context_in,
    context_of_id,
    sampled_by_id,
)
from ..model.workload import Ended, Extra, Flight
from .hand_out import HandOut
from .items import Items


class TailerTracing:
    """The spans of one tailer. `ratio` is the share of items that it samples where nobody decided before."""

    def __init__(self, place: Spans, tailer: str, ratio: float | None) -> None:
        self._place = place
        self._tailer = tailer
        self._ratio = place.ratio if ratio is None else ratio

    def pushed(self, flight: Flight, place: Any, now: float) -> dict[int, TraceContext]:
        """The trace contexts of the sampled items of a flight that is handed out, by index. Items that are sampled here
        carry theirs in a header from now on. `place` is where they are in their source, `now` wall clock seconds."""
        items = place if isinstance(place, Items) else None
        fresh = self._decide(flight, items)
        found = fresh
        if len(flight.extras) > len(fresh):
            found = dict(sampled({index: extra for index, extra in flight.extras.items() if index not in fresh}))
            found.update(fresh)
        if not found:
            return found
        batch, links = new_span_id(), []
        made = []
        for index, context in found.items():
            links.append((context.trace_id, context.span_id))
            if index in fresh and flight.attempts[index] == 1:
                made.append(
                    self._receive(flight, index, context, now if items is None else items.batch.times[index], now)
                )
        attributes = {
            spans.SYSTEM: "tailrace",
            spans.OPERATION: "poll",
            spans.OPERATION_TYPE: "receive",
            spans.DESTINATION: self._tailer,
            spans.BATCH_COUNT: len(flight),
            spans.FENCE: flight.fence,
        }
        poll = Span(f"poll {self._tailer}", spans.CLIENT, new_trace_id(), batch, 0, now, now, attributes, tuple(links))
        self._place.add([poll, *made])
        return found

    def _decide(self, flight: Flight, items: Items | None) -> dict[int, TraceContext]:
        """The items that are sampled here, by index: those about which nobody decided before."""
        fresh = {}
        for index in sampled_by_id(flight.ids, self._ratio):
            extra = flight.extras.get(index)
            if extra is not None and carries(extra.headers):
                continue
            context = context_of_id(flight.ids[index])
            header = (TRACEPARENT, context.traceparent)
            if extra is None:
                extra = flight.extras[index] = Extra()
            extra.headers = (*extra.headers, header)
            if items is not None:
                items.mapped.headers[index] = (*items.mapped.headers[index], header)
            fresh[index] = context
        return fresh

    def _receive(self, flight: Flight, index: int, context: TraceContext, since: float, now: float) -> Span:
        attributes = of_item(flight.kinds[index].function, flight.ids[index], "receive", "receive")
        attributes[spans.TAILER] = self._tailer
        start = since if 0 < since <= now else now
        name = f"receive {self._tailer}"
        return Span(name, spans.CONSUMER, context.trace_id, context.span_id, 0, start, now, attributes)

    def ended(self, out: HandOut, ends: Mapping[int, Ended], now: float) -> None:
        """Makes spans for the sampled items of a flight that have ended by now. An item that was handed back unstarted
        gets none: it made no attempt, and the scheduler makes a span for it."""
        made = []
        for index in [index for index in out.traced if not out.open[index]]:
            context, ended = out.traced.pop(index), ends.get(index)
            if ended is None or ended.outcome != Outcome.HELD:
                made.append(self._attempt(out, index, context, ended, now))
        if made:
            self._place.add(made)

    def _attempt(self, out: HandOut, index: int, context: TraceContext, ended: Ended | None, now: float) -> Span:
        flight = out.flight
        kind, id, attempt = flight.kinds[index], flight.ids[index], flight.attempts[index]
        outcome = Outcome.SUCCESS if ended is None else Outcome(ended.outcome)
        attributes = of_item(kind.function, id) | {
            spans.FUNCTION: kind.function,
            spans.PRIORITY: kind.priority,
            spans.ATTEMPT: attempt,
            spans.FENCE: flight.fence,
            spans.TAILER: self._tailer,
            spans.OUTCOME: outcome.name.lower(),
        }
        error = ""
        if ended is not None and outcome is not Outcome.SUCCESS:
            attributes[spans.REASON] = ended.reason[: spans.REASON_LENGTH]
            attributes[spans.ERROR_TYPE] = outcome.name.lower()
            error = attributes[spans.REASON]
        before = ((context.trace_id, attempt_span(context, id, attempt - 1)),) if attempt > 1 else ()
        own = attempt_span(context, id, attempt)
        name = f"attempt {kind.function}"
        return Span(
            name, spans.INTERNAL, context.trace_id, own, context.span_id, out.pushed_at, now, attributes, before, error
        )

    def parked(self, items: Sequence[Parked], since: float, now: float) -> None:
        """Makes spans for the sampled items among those that are durable in the delay service; they left at `since`."""
        made = []
        for item in items:
            context = context_in(item.headers) if item.headers else None
            if context is None or not context.sampled:
                continue
            attributes = of_item(item.kind.function, item.id, "park", "settle")
            attributes |= {spans.TAILER: self._tailer, spans.ATTEMPT: item.attempt - 1, "tailrace.due": item.due}
            parent = attempt_span(context, item.id, item.attempt - 1)
            name = f"park {self._tailer}"
            made.append(Span(name, spans.CLIENT, context.trace_id, new_span_id(), parent, since, now, attributes))
        if made:
            self._place.add(made)


def tracing_of(tailer: str, ratio: float | None) -> TailerTracing | None:
    """The tracing of a new tailer; None where tracing is off."""
    place = installed()
    return None if place is None else TailerTracing(place, tailer, ratio)
