"""Measures of a gateway's submissions: durations, counts by function, priority and result, and spans of sampled
ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..foundation.clock import Clock
from ..foundation.tracing import new_span_id
from ..foundation.tracing import spans as installed
from ..model import spans
from ..model.histogram import LABEL_SETS, OTHER
from ..model.metrics import SUBMISSIONS, SUBMIT_DURATION, Sample, of_histograms
from ..model.priority import Priority
from ..model.spans import Span, of_item
from ..model.trace_context import context_in
from ..stores.queue.intake import NewItem

ACCEPTED, REFUSED = "accepted", "refused"
_LEVELS = {int(priority): priority.label for priority in Priority}


class SubmissionMeasures:
    """Counts of a gateway's submissions since it was made."""

    def __init__(self, clock: Clock) -> None:
        self.durations = SUBMIT_DURATION.histograms()
        self.results: Counter[tuple[str, str, str]] = Counter()  # by function, level and result
        self._clock = clock
        self._place = installed()

    def ended(self, items: Sequence[NewItem], ids: Sequence[str], seconds: float, result: str) -> None:
        """Counts the items of a request that was stored under these ids, or refused, after so many seconds."""
        self.durations.record((result,), seconds)
        for kind, count in Counter([item.kind for item in items]).items():
            key = (kind.function, _LEVELS.get(kind.priority, OTHER), result)
            if key not in self.results and len(self.results) >= LABEL_SETS:
                key = (OTHER, OTHER, result)
            self.results[key] += count
        if self._place is not None and ids:
            self._tell(items, ids, seconds)

    def _tell(self, items: Sequence[NewItem], ids: Sequence[str], seconds: float) -> None:
        made, now = [], self._clock.wall()
        for item, id in zip(items, ids, strict=True):
            context = context_in(item.headers) if item.headers else None
            if context is not None and context.sampled:
                function = item.kind.function
                attributes = of_item(function, id, "send", "send") | {spans.PRIORITY: item.kind.priority}
                within = (context.trace_id, new_span_id(), context.span_id, now - seconds, now)
                made.append(Span(f"send {function}", spans.PRODUCER, *within, attributes))
        if made and self._place is not None:
            self._place.add(made)

    def samples(self) -> list[Sample]:
        """The measures as samples of metrics."""
        counted = [
            Sample(SUBMISSIONS, (("function", function), ("priority", level), ("result", result)), count)
            for (function, level, result), count in sorted(self.results.items())
        ]
        return [*of_histograms(SUBMIT_DURATION, self.durations), *counted]
