"""The span of a run: everything that its function adds is kept within bounds."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from tailrace.foundation.otlp import encoded
from tailrace.runtime.run_span import MOST_ATTRIBUTES, MOST_EVENTS, RunSpan


class Strange:
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


def span() -> RunSpan:
    context = SpanContext(1, 2, False, TraceFlags(1))
    return RunSpan(context, "mail", 3, 10.0, {"messaging.message.id": "a"}, lambda: 12.5)


def test_a_function_may_say_more_of_its_run() -> None:
    run = span()
    run.set_attribute("customer", "ann")
    run.set_attributes({"n": 3, "tags": ["a", "b"]})
    run.add_event("charged", {"amount": 7}, 11_000_000_000)
    run.record_exception(ValueError("no"))
    run.set_status(Status(StatusCode.ERROR, "half done"))
    run.update_name("mail ann")
    run.end()
    told = run.over("success", "")
    assert (told.name, told.trace_id, told.span_id, told.parent) == ("mail ann", 1, 2, 3)
    assert (told.start, told.end, told.error) == (10.0, 12.5, "half done")
    assert told.attributes["customer"] == "ann" and told.attributes["tags"] == ["a", "b"]
    assert told.attributes["tailrace.outcome"] == "success"
    assert [(name, at) for name, at, _ in told.events] == [("charged", 11.0), ("exception", 12.5)]
    # And how the run ended says more than the function did
    assert span().over("retry", "it broke").error == "it broke"


def test_what_it_adds_is_bounded_and_can_be_sent() -> None:
    run = span()
    for number in range(10_000):
        run.set_attribute(f"a{number}", "x" * 100_000)
        run.add_event("e" * 10_000, {f"k{at}": at for at in range(1000)})
    strange: Any = Strange()
    run.set_attribute("messaging.message.id", strange)
    run.set_attribute(strange, "\udcff")
    run.set_status(strange)
    run.add_event(strange, {strange: strange})
    told = run.over("success", "")
    assert len(told.attributes) == MOST_ATTRIBUTES + 1  # with the outcome
    assert len(told.events) == MOST_EVENTS
    assert len(encoded(told)) < 5_000_000
