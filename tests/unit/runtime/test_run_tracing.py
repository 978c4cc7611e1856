"""Traces of runs: the run's span is the current one, user code is under it, and nothing is left behind."""

from __future__ import annotations

import contextvars
from types import SimpleNamespace
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

from tailrace.foundation.span_queue import SpanQueue
from tailrace.model.outcome import Outcome
from tailrace.model.spans import Span
from tailrace.model.trace_context import attempt_span, context_in, parsed
from tailrace.model.workload import Ended
from tailrace.runtime.tracing import RunTracing, traced
from tailrace.sdk.call import Call

TRACE = "0af7651916cd43dd8448eb211c80319c"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-b7ad6b7169203331-01", f"00-{TRACE}-b7ad6b7169203331-00"


def item(*headers: tuple[str, str]) -> Any:
    frame = SimpleNamespace(
        first=5, extras={0: ("", headers, 0, 0.0, "")}, ids=["orders/0/7"], attempts=[2], fences=[9]
    )
    return (5, SimpleNamespace(name="mail"), b"", frame)


class Kept(SpanQueue):
    """A queue that exports nothing by itself."""

    def __init__(self) -> None:
        super().__init__(lambda: lambda spans: True, ratio=1.0)
        self.spans: list[Span] = []

    def add(self, spans: Any) -> None:
        self.spans += spans


def test_a_sampled_run_is_a_span_and_user_code_is_under_it() -> None:
    queue, before = Kept(), contextvars.copy_context()
    tracing = RunTracing(queue, lambda: 12.0)
    users = TracerProvider(sampler=ParentBased(ALWAYS_OFF)).get_tracer("shop")
    # Given a run of a sampled item
    begun = tracing.begin(item(("traceparent", SAMPLED), ("tracestate", "shop=1")))
    # When its function makes a span and a submission
    with users.start_as_current_span("charge") as span:
        told = trace.get_current_span().get_span_context()
        headers = Call("mail").headers
    tracing.end(begun, None)
    # Then all of it is in the trace
    [run] = queue.spans
    assert (f"{run.trace_id:032x}", run.name, run.error) == (TRACE, "mail", "")
    context = parsed(SAMPLED)
    assert context is not None and run.parent == attempt_span(context, "orders/0/7", 2)
    assert told.trace_id == run.trace_id and span.parent is not None and span.parent.span_id == run.span_id  # type: ignore[attr-defined]
    assert context_in(headers) == (run.trace_id, told.span_id, True)
    assert dict(headers)["tracestate"] == "shop=1"
    assert traced(begun) == TRACE
    # And nothing is left behind
    assert contextvars.copy_context() == before


def test_a_failed_run_says_how_it_ended() -> None:
    queue = Kept()
    tracing = RunTracing(queue)
    for ended in (Ended(Outcome.RETRY, "no"), Ended(Outcome.THROTTLED, "later"), Ended(Outcome.SUCCESS, result=b"1")):
        tracing.end(tracing.begin(item(("traceparent", SAMPLED))), ended)  # type: ignore[arg-type]
    assert [(run.error, run.attributes["tailrace.outcome"]) for run in queue.spans] == [
        ("no", "retry"),
        ("", "throttled"),
        ("", "success"),
    ]


def test_what_is_not_sampled_or_exported_hands_its_context_on_and_has_no_span() -> None:
    queue = Kept()
    users = TracerProvider(sampler=ParentBased(ALWAYS_ON)).get_tracer("shop")
    for place, header in ((queue, NOT_SAMPLED), (None, SAMPLED)):
        tracing = RunTracing(place)
        begun = tracing.begin(item(("traceparent", header)))
        with users.start_as_current_span("charge") as span:
            assert f"{span.get_span_context().trace_id:032x}" == TRACE
            assert span.is_recording() is (header == SAMPLED)
        tracing.end(begun, None)  # type: ignore[arg-type]
        assert traced(begun) == ""
    assert queue.spans == []


def test_an_item_without_a_readable_trace_touches_no_context() -> None:
    tracing = RunTracing(Kept())
    for headers in ((), (("a", "b"),), (("traceparent", "nonsense"),)):
        assert tracing.begin(item(*headers)) is None
    assert not trace.get_current_span().get_span_context().is_valid


def test_strange_headers_do_not_end_a_run() -> None:
    queue = Kept()
    tracing = RunTracing(queue)
    for state in ("", "=", "a=" + "x" * 5000, "\x00", ",".join(f"k{n}=v" for n in range(99))):
        begun = tracing.begin(item(("traceparent", SAMPLED), ("tracestate", state)))
        tracing.end(begun, None)  # type: ignore[arg-type]
    assert len(queue.spans) == 5
