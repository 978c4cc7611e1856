"""Traces of functions' runs: a span of each sampled run, which is the current one while its function runs, so that the
spans of user code are its children and its submissions go on in its trace.

OpenTelemetry's context is only touched for items that carry a trace, and where its API is loaded: by us, to export, or
by the functions' own modules.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

from ..foundation import otel
from ..foundation.clock import SYSTEM_CLOCK
from ..foundation.span_queue import SpanQueue
from ..foundation.tracing import new_span_id
from ..model import spans
from ..model.outcome import Outcome
from ..model.spans import of_item
from ..model.trace_context import TRACESTATE, TraceContext, attempt_span, context_in
from ..model.workload import Ended
from .entry import Item, extra_of
from .frames import HEADERS

#: Outcomes of a run that are no error of its function.
_WELL = (Outcome.SUCCESS, Outcome.HELD, Outcome.THROTTLED)


def carried(item: Item) -> TraceContext | None:
    """The trace context that an item carries; None: it carries none."""
    extra = extra_of(item)
    return None if extra is None or not extra[HEADERS] else context_in(extra[HEADERS])


def traced(begun: tuple[Any, Any] | None) -> str:
    """The trace id of a run whose span is recorded; empty: there is none."""
    if begun is None or not begun[0].is_recording():
        return ""
    return f"{begun[0].get_span_context().trace_id:032x}"


class RunTracing:
    """The spans of an executor's runs. `queue` is None where nothing is exported: then a run that belongs to a trace
    only hands on its context."""

    def __init__(self, queue: SpanQueue | None, wall: Callable[[], float] = SYSTEM_CLOCK.wall) -> None:
        from opentelemetry import context, trace

        from .run_span import RunSpan

        self._queue = queue
        self._wall = wall
        self._span = RunSpan
        self._trace: Any = trace
        self._context: Any = context
        self._sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        self._not_sampled = trace.TraceFlags(trace.TraceFlags.DEFAULT)

    def begin(self, item: Item) -> tuple[Any, Any] | None:
        """Begins the span of a run in the current context. Returns the argument of `end`; None: the item carries no
        trace. Never raises."""
        found = carried(item)
        if found is None:
            return None
        try:
            return self._begin(item, found)
        except Exception:  # of the API, or of somebody's own implementation of it: the run goes on without
            return None

    def _begin(self, item: Item, found: TraceContext) -> tuple[Any, Any]:
        trace, (key, entry, _, frame) = self._trace, item
        index = key - frame.first
        id, attempt, name = frame.ids[index], frame.attempts[index], entry.name
        state = next((value for header, value in frame.extras[index][HEADERS] if header == TRACESTATE), "")
        trace_state = trace.TraceState.from_header([state]) if state else None
        span: Any
        if not found.sampled or self._queue is None:
            own = attempt_span(found, id, attempt) if found.sampled else found.span_id
            flags = self._sampled if found.sampled else self._not_sampled
            span = trace.NonRecordingSpan(trace.SpanContext(found.trace_id, own, True, flags, trace_state))
        else:
            attributes = of_item(name, id, "process", "process") | {
                spans.TRIGGER: "pubsub",
                spans.INVOCATION: f"{id}/{attempt}",
                spans.ATTEMPT: attempt,
                spans.FENCE: frame.fences[index],
            }
            context = trace.SpanContext(found.trace_id, new_span_id(), False, self._sampled, trace_state)
            parent = attempt_span(found, id, attempt)
            span = self._span(context, name, parent, self._wall(), attributes, self._wall)
        return span, self._context.attach(trace.set_span_in_context(span))

    def end(self, begun: tuple[Any, Any], ended: Ended | None) -> None:
        """Ends the span of a run, in the same context. Never raises."""
        with contextlib.suppress(Exception):
            self._end(*begun, ended)

    def _end(self, span: Any, token: Any, ended: Ended | None) -> None:
        self._context.detach(token)
        if self._queue is None or not span.is_recording():
            return
        outcome = Outcome.SUCCESS if ended is None else Outcome(ended.outcome)
        reason = "" if ended is None or outcome in _WELL else ended.reason[: spans.REASON_LENGTH]
        self._queue.add([span.over(outcome.name.lower(), reason)])


class _Queued:
    """A span processor for the SDK: it puts ended spans into the queue of this process."""

    def __init__(self, queue: SpanQueue) -> None:
        self._queue = queue

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Does nothing: a span is told when it has ended."""

    def _on_ending(self, span: Any) -> None: ...

    def on_end(self, span: Any) -> None:
        """Takes a span that is over."""
        if span.context.trace_flags.sampled:
            self._queue.add([span])

    def shutdown(self) -> None:
        """Does nothing: the queue is its process's."""

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Does nothing: the code that ends the process waits for the queue."""
        return True


def tracing() -> RunTracing | None:
    """The tracing of an executor whose functions are loaded; None: neither they nor we use OpenTelemetry."""
    settings, queue = otel.settings(), otel.queue()
    if settings is None or queue is None:
        return RunTracing(None) if "opentelemetry.trace" in sys.modules else None
    queue.start()
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

    gc.freeze()  # imported objects are not looked through again with each run's garbage
    provider = TracerProvider(resource=settings.resource(), sampler=ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
    provider.add_span_processor(_Queued(queue))  # type: ignore[arg-type]
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # the functions' modules set up no other
        trace.set_tracer_provider(provider)
    return RunTracing(queue)
