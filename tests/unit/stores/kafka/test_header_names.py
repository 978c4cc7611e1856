"""Names of headers, which any producer writes: ours come back as they were, others are themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.kafka.records import headers_of, to_kafka

text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(text, text), max_size=4))
def test_what_we_wrote_is_read_as_it_was(headers: list[tuple[str, str]]) -> None:
    _, written = to_kafka("", tuple(headers))
    assert headers_of(written, {}) == tuple(headers)


@pytest.mark.parametrize("name", ["tailrace.hex:zz", "tailrace.hex:ff", "tailrace.hex:0", "tailrace.hex:é"])
@pytest.mark.parametrize("more", [[], [("b", b"2")]])
def test_a_name_that_only_begins_as_ours_do_stops_no_record(name: str, more: list[tuple[str, bytes]]) -> None:
    assert headers_of([(name, b"1"), *more], {})[0] == (name, "1")
