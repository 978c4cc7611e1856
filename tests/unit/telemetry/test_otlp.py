"""Spans as OTLP: the protocol's own messages read all of it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from tailrace.foundation.otlp import encoded, request
from tailrace.model.spans import CONSUMER, Span

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.one_of(st.booleans(), NUMBERS, st.floats(allow_nan=False), NAMES, st.lists(NUMBERS, max_size=3))
TRACES, SPANS = st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1)
TIMES = st.floats(0, 4e9)
RECORDS = st.builds(
    Span,
    NAMES,
    st.sampled_from([0, 2, 3, 4]),
    TRACES,
    SPANS,
    st.integers(0, (1 << 64) - 1),
    TIMES,
    TIMES,
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.lists(st.tuples(TRACES, SPANS), max_size=3).map(tuple),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    st.lists(st.tuples(NAMES, TIMES, st.dictionaries(NAMES, VALUES, max_size=2)), max_size=2).map(tuple),
)


def value_of(message: object) -> object:
    which = message.WhichOneof("value")  # type: ignore[attr-defined]
    found = getattr(message, which)
    return [value_of(each) for each in found.values] if which == "array_value" else found


@given(RECORDS)
def test_a_span_is_read_by_the_protocols_own_messages(span: Span) -> None:
    read = Message.FromString(encoded(span))
    assert (read.name, read.kind) == (span.name, span.kind + 1)
    assert int.from_bytes(read.trace_id, "big") == span.trace_id and len(read.trace_id) == 16
    assert int.from_bytes(read.span_id, "big") == span.span_id
    assert int.from_bytes(read.parent_span_id, "big") == span.parent
    assert (read.start_time_unix_nano, read.end_time_unix_nano) == (int(span.start * 1e9), int(span.end * 1e9))
    assert {each.key: value_of(each.value) for each in read.attributes} == span.attributes
    assert [(int.from_bytes(each.trace_id, "big"), int.from_bytes(each.span_id, "big")) for each in read.links] == [
        *span.links
    ]
    assert (read.status.code, read.status.message) == ((2, span.error) if span.error else (0, ""))
    assert [(each.name, each.time_unix_nano) for each in read.events] == [
        (name, int(at * 1e9)) for name, at, _ in span.events
    ]
    assert read.flags == 1


@given(st.lists(RECORDS, min_size=1, max_size=3))
def test_two_requests_behind_each_other_are_one(spans: list[Span]) -> None:
    both = ExportTraceServiceRequest.FromString(request(b"", spans) + request(b"", spans))
    assert [len(each.scope_spans[0].spans) for each in both.resource_spans] == [len(spans)] * 2
    assert both.resource_spans[0].scope_spans[0].scope.name == "tailrace"


def test_what_user_code_may_give_is_written_somehow() -> None:
    strange = {
        "a\udcff": "\udcff",
        "huge": 1 << 70,
        "nan": math.nan,
        "none": None,
        "deep": [[1], "x"],
        "long": "x" * 9999,
    }
    read = Message.FromString(encoded(Span("f", CONSUMER, 1, 1, 0, 1.0, 2.0, strange)))
    found = {each.key: value_of(each.value) for each in read.attributes}
    assert found["huge"] == str(1 << 70) and found["none"] == ""
    assert len(str(found["long"])) == 2000
