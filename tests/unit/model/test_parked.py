"""A parked item travels through a log as headers and comes back the same."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.sdk.model.parked import Parked, parked_from, parked_headers
from tailrace.sdk.model.workload import Kind

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
        st.tuples(st.text(max_size=12).filter(lambda name: not name.startswith("tailrace-")), st.text(max_size=5)),
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


def test_what_is_empty_is_left_out() -> None:
    headers = dict(parked_headers(Parked("t", "t/0/1", Kind("f"), b"", 5.0, 1.0)))
    assert not {"tailrace-reason", "tailrace-key", "tailrace-progress", "tailrace-tenant"} & set(headers)


def test_a_record_that_is_no_parked_item_is_an_error() -> None:
    with pytest.raises(KeyError):
        parked_from((("trace", "1"),), b"")


def test_a_time_keeps_its_microseconds() -> None:
    item = Parked("t", "i", Kind("f"), b"", due=1_763_713_200.123456, first_seen=0.1 + 0.2)
    assert dataclasses.astuple(parked_from(parked_headers(item), b"")) == dataclasses.astuple(item)
