"""Trace context: texts that W3C calls valid, and a decision that everybody who knows an item comes to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.trace_context import (
    TraceContext,
    attempt_span,
    context_in,
    context_of_id,
    parsed,
    sampled_by_id,
)

CONTEXTS = st.builds(TraceContext, st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1), st.booleans())
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@given(CONTEXTS)
def test_a_context_comes_back_from_its_header(context: TraceContext) -> None:
    assert parsed(context.traceparent) == context
    assert context_in((("a", "b"), ("traceparent", context.traceparent))) == context


def test_what_is_not_valid_is_none() -> None:
    assert parsed(f"00-{TRACE}-{SPAN}-01") is not None
    assert parsed(f"cc-{TRACE}-{SPAN}-01-what-a-later-version-adds") is not None
    assert parsed(f"00-{TRACE}-{SPAN}-03") == parsed(f"00-{TRACE}-{SPAN}-01")  # other flags are others'
    for wrong in (
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-zz",
        f"00-{TRACE}-{SPAN}-01\n",
        f"\u0660\u0660-{TRACE}-{SPAN}-01",  # digits, but not those
    ):
        assert parsed(wrong) is None, wrong


@given(st.text())
def test_no_header_is_too_strange(value: str) -> None:
    assert parsed(value) is None or value.isascii()


@given(st.lists(st.text()), st.floats(0, 1), st.floats(0, 1))
def test_an_id_that_is_sampled_at_one_ratio_is_at_every_higher_one(ids: list[str], one: float, other: float) -> None:
    lower, higher = sorted((one, other))
    assert set(sampled_by_id(ids, lower)) <= set(sampled_by_id(ids, higher))
    assert sampled_by_id(ids, 0) == [] and sampled_by_id(ids, 1) == list(range(len(ids)))


def test_ids_that_follow_each_other_are_sampled_evenly() -> None:
    for form in ("orders/0/{}", "{:016x}", "clock/each-minute/{}"):
        ids = [form.format(number) for number in range(100_000)]
        for ratio in (0.001, 0.01, 0.1, 0.5):
            found = sampled_by_id(ids, ratio)
            assert 0.8 * ratio < len(found) / len(ids) < 1.2 * ratio, (form, ratio, len(found))
            halves = sum(index < 50_000 for index in found)
            assert 0.35 < halves / len(found) < 0.65, (form, ratio)


def test_whoever_knows_an_item_comes_to_the_same_spans_and_no_two_attempts_share_one() -> None:
    context = context_of_id("orders/0/7")
    assert context == context_of_id("orders/0/7") and context.sampled
    spans = {attempt_span(context, id, attempt) for id in ("orders/0/7", "orders/0/8") for attempt in range(1, 50)}
    assert len(spans) == 98 and all(0 < span < 1 << 64 for span in spans)
    assert attempt_span(context, "a\udcff", 1)  # half a surrogate pair has bytes too
