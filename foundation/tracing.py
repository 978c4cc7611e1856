"""Tracing of this process: on when a place for spans was installed, as an exporter does.

The parts ask `spans()` once, when they are made. None means off: then nothing of a trace is looked at, and nothing of
OpenTelemetry is imported.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..model.spans import Span
from ..model.trace_context import TRACEPARENT, TRACESTATE, TRACESTATE_LENGTH, TraceContext, context_in
from ..model.workload import Extra, Headers


class Spans(Protocol):
    """A place for spans that are over. `ratio`: the share of items that is sampled where nobody else decides. `add`
    never blocks and never raises: spans that do not fit are dropped and counted."""

    ratio: float

    def add(self, spans: list[Span]) -> None: ...


_installed: Spans | None = None


def install(spans: Spans | None) -> None:
    """Turns tracing on for parts that are made from now on; None: off."""
    global _installed  # noqa: PLW0603 - of a process there is one, as of its logs
    _installed = spans


def spans() -> Spans | None:
    """The place for spans; None: tracing is off."""
    return _installed


def sampled(extras: dict[int, Extra]) -> Iterator[tuple[int, TraceContext]]:
    """Yields index and context of the sampled items of a batch; `extras` are the values that few of its items carry."""
    for index, extra in extras.items():
        if extra.headers and (context := context_in(extra.headers)) is not None and context.sampled:
            yield index, context


def new_span_id() -> int:
    """A new id for a span."""
    return random.getrandbits(64) or 1


def new_trace_id() -> int:
    """A new id for a trace."""
    return random.getrandbits(128) or 1


def headers_of_a_call(given: Headers) -> Headers:
    """Headers of a call that is made now: with the context of the program's current span, where the program traces
    itself and did not give another one. Many calls within one span have the same context."""
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return given
    try:
        if any(name == TRACEPARENT for name, _ in given):
            return given
        current = api.get_current_span().get_span_context()
        if not current.is_valid:
            return given
        found = TraceContext(current.trace_id, current.span_id, bool(current.trace_flags.sampled))
        state = current.trace_state.to_header() if current.trace_state else ""
    except Exception:  # somebody else's tracer must not cost a submission
        return given
    more: Iterable[tuple[str, str]] = [(TRACEPARENT, found.traceparent)]
    if state and len(state) <= TRACESTATE_LENGTH:
        more = [*more, (TRACESTATE, state)]
    return (*given, *more)


def wanted(environment: Any = os.environ) -> bool:
    """Whether the environment names a place for traces or metrics, by OpenTelemetry's own variables."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)


#: Variables of OpenTelemetry's that turn it on.
ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
