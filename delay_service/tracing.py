"""Spans of the delay service: from when a sampled item entered a rung until it left it."""

from __future__ import annotations

from collections.abc import Iterable

from ..foundation.tracing import Spans, new_span_id
from ..foundation.tracing import spans as installed
from ..model import spans
from ..model.parked import parked_from
from ..model.spans import Span, of_item
from ..model.trace_context import TraceContext, attempt_span, context_in
from ..stores.log.log import Record


class DelayTracing:
    """The spans of a mover. Times are wall clock seconds."""

    def __init__(self, place: Spans) -> None:
        self._place = place

    def moved(self, rung: str, entered: Iterable[float], records: Iterable[list[Record]], now: float) -> None:
        """Records are durable where they go next. `entered`: when each came into the rung that it left; one holds
        several items where those travel together."""
        made = []
        for since, items in zip(entered, records, strict=False):
            for item in items:
                context = context_in(item.headers) if len(item.headers) > 1 else None  # the first is the platform's own
                if context is not None and context.sampled:
                    made.append(_span(rung, item, context, since, now))
        if made:
            self._place.add(made)


def _span(rung: str, record: Record, context: TraceContext, since: float, now: float) -> Span:
    item = parked_from(record.headers, b"")
    attributes = of_item(item.kind.function, item.id) | {spans.RUNG: rung, "tailrace.due": item.due}
    parent = attempt_span(context, item.id, item.attempt - 1)
    start, name = min(since, now), f"delay {rung}"
    return Span(name, spans.INTERNAL, context.trace_id, new_span_id(), parent, start, now, attributes)


def tracing() -> DelayTracing | None:
    """The tracing of a mover that is made now; None: it is off."""
    place = installed()
    return None if place is None else DelayTracing(place)
