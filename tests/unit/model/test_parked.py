"""A parked item travels through a log as headers and comes back the same."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.parked import Parked, Ticket, parked_from, parked_headers, ticket_of
from tailrace.model.workload import Kind

times = st.floats(0, 1e11, allow_nan=False)
names = st.text(min_size=1, max_size=10)
counts = st.integers(0, 1000)

items = st.builds(
    Parked,
    tailer=names,
    id=names,
    kind=st.builds(Kind, names, st.integers(0, 3), st.text(max_size=5), st.text(max_size=5)),
    payload=st.binary(max_size=20),
    due=times,
    first_seen=times,
    attempt=st.integers(1, 1000),
    crashes=counts,
    throttles=counts,
    reason=st.text(max_size=20),
    key=st.text(max_size=5),
    headers=st.lists(
        st.tuples(st.text(max_size=12), st.text(max_size=5)),
        max_size=4,
    ).map(tuple),
    expires_at=times,
    progress=st.text(max_size=5),
    partition=st.text(max_size=5),
    position=counts,
    n=counts,
)


@given(items)
def test_a_parked_item_comes_back_the_same(item: Parked) -> None:
    assert parked_from(parked_headers(item), item.payload) == item


def test_the_workloads_own_headers_follow_untouched() -> None:
    own = (("trace", "1"), ("trace", "2"), ("Tailrace-", "x"))
    item = Parked("t", "t/0/1", Kind("f"), b"", 5.0, 1.0, headers=own)
    assert parked_headers(item)[-3:] == own


def test_a_record_costs_one_header_that_people_can_read() -> None:
    ((name, value),) = parked_headers(Parked("orders", "orders/0/1", Kind("f"), b"", 5.0, 1.0, reason="503", key="k"))
    assert name == "tailrace-item"
    assert value.startswith('["f",5.0,') and '"503"' in value


def test_the_ticket_is_the_beginning_of_the_header() -> None:
    item = Parked("t", "t/0/1", Kind("f"), b"", 5.0, 1.0, key="k", headers=(("tailrace-due", "mine"),))
    assert ticket_of(parked_headers(item, latest=7.5)) == Ticket("f", 5.0, 7.5, "k")
    assert ticket_of((("trace", "1"),)) is None
    assert ticket_of((("tailrace-item", '["f","soon"]'),)) is None


def test_a_record_that_is_no_parked_item_is_an_error() -> None:
    with pytest.raises(ValueError, match="its first header is not tailrace-item"):
        parked_from((("trace", "1"),), b"")
    with pytest.raises(ValueError, match="Expected"):
        parked_from((("tailrace-item", "[1]"),), b"")


def test_a_time_keeps_its_microseconds() -> None:
    item = Parked("t", "i", Kind("f"), b"", due=1_763_713_200.123456, first_seen=0.1 + 0.2)
    assert msgspec.structs.astuple(parked_from(parked_headers(item), b"")) == msgspec.structs.astuple(item)
