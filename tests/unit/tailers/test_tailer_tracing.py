"""Spans of a tailer: only of sampled items, decided once, in batches, and no object for the others."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tailrace.model.outcome import Outcome
from tailrace.model.spans import Span
from tailrace.model.trace_context import attempt_span, context_in, context_of_id, parsed, sampled_by_id
from tailrace.model.workload import Ended, Extra, Flight, Kind
from tailrace.tailers.hand_out import HandOut
from tailrace.tailers.tracing import TailerTracing

MAIL = Kind("mail", 0)
PARENT = parsed("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
assert PARENT is not None


class Place:
    """Takes spans."""

    def __init__(self, ratio: float = 0.0) -> None:
        self.ratio = ratio
        self.spans: list[Span] = []

    def add(self, spans: list[Span]) -> None:
        self.spans += spans


def flight(size: int, attempts: int = 1, **headers: str) -> Flight:
    """Items of which some have headers, by index."""
    extras = {int(at[1:]): Extra(headers=(("traceparent", value),)) for at, value in headers.items()}
    ids = [f"orders/0/{number}" for number in range(size)]
    return Flight(1, 7, [MAIL] * size, ids, [b""] * size, [attempts] * size, extras)


def handed_out(tracing: TailerTracing, pushed: Flight) -> HandOut:
    out = HandOut(pushed, [], Counter(), 100.0, None)
    out.traced = tracing.pushed(pushed, None, 100.0)
    return out


def test_only_what_is_sampled_has_spans_and_whatever_others_decided_stays() -> None:
    place = Place()
    tracing = TailerTracing(place, "orders", None)
    unsampled = PARENT._replace(sampled=False).traceparent
    pushed = flight(5, _1=PARENT.traceparent, _2=unsampled, _3="nonsense")
    out = handed_out(tracing, pushed)
    assert out.traced == {1: PARENT} and set(pushed.extras) == {1, 2, 3}
    [poll] = place.spans
    assert poll.links == ((PARENT.trace_id, PARENT.span_id),) and poll.trace_id != PARENT.trace_id
    assert poll.attributes["messaging.batch.message_count"] == 5
    # And at a ratio of its own only those are looked at of which nobody said anything
    pushed = flight(5, _1=PARENT.traceparent, _2=unsampled, _3="nonsense")
    assert set(handed_out(TailerTracing(place, "orders", 1.0), pushed).traced) == {0, 1, 4}


def test_a_decision_by_id_is_the_same_each_time_and_goes_on_with_the_item() -> None:
    place = Place(ratio=0.1)
    tracing = TailerTracing(place, "orders", None)
    pushed, again = flight(1000), flight(1000, attempts=2)
    first, second = handed_out(tracing, pushed).traced, handed_out(tracing, again).traced
    assert first == second == {at: context_of_id(pushed.ids[at]) for at in sampled_by_id(pushed.ids, 0.1)}
    assert {at: context_in(extra.headers) for at, extra in pushed.extras.items()} == first
    # And only the first hand-out of an item begins its trace
    assert sum(span.name == "receive orders" for span in place.spans) == len(first)


def test_each_attempt_is_one_span_linked_with_the_one_before_and_what_was_held_is_none() -> None:
    place = Place()
    tracing = TailerTracing(place, "orders", None)
    ends: Any = [
        (1, Ended(Outcome.HELD, "paused")),
        (1, Ended(Outcome.RETRY, "x" * 9999)),
        (2, None),
    ]
    for attempt, ended in ends:
        out = handed_out(tracing, flight(2, attempt, _1=PARENT.traceparent))
        out.close([1])
        tracing.ended(out, {} if ended is None else {1: ended}, 103.0)
        assert not out.traced
    first, second = [span for span in place.spans if span.name == "attempt mail"]
    assert (first.parent, second.parent) == (PARENT.span_id, PARENT.span_id)
    assert first.span_id == attempt_span(PARENT, "orders/0/1", 1)
    assert (first.links, second.links) == ((), ((PARENT.trace_id, first.span_id),))
    assert (first.attributes["error.type"], len(first.error), second.error) == ("retry", 200, "")
    assert (first.start, first.end) == (100.0, 103.0)
