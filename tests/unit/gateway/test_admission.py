"""Admission: how much may be in the middle of being stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.admission import LONGEST_WAIT, SHORTEST_WAIT, Admission
from tailrace.model.errors import Overloaded


def test_beyond_the_bound_it_refuses_and_says_when_to_come_back() -> None:
    # Given a gateway that is storing as much as it may
    admission = Admission(max_items=10, max_bytes=1000)
    admission.enter(10, 100)
    # When one more comes, then it is refused
    with pytest.raises(Overloaded, match="storing 10 workloads") as caught:
        admission.enter(1, 1)
    assert SHORTEST_WAIT <= caught.value.retry_after <= LONGEST_WAIT
    # And taken once the others are stored
    admission.leave(10, 100, 0.01)
    admission.enter(1, 1)


def test_bytes_are_bounded_too() -> None:
    admission = Admission(max_items=10, max_bytes=1000)
    admission.enter(1, 900)
    with pytest.raises(Overloaded, match="900 bytes"):
        admission.enter(1, 101)


def test_a_lone_request_is_let_in_whatever_its_size() -> None:
    Admission(max_items=10, max_bytes=1000).enter(100, 5000)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 2000), st.booleans()), max_size=60))
def test_what_is_inside_never_passes_the_bounds_except_for_a_lone_request(
    requests: list[tuple[int, int, bool]],
) -> None:
    admission = Admission(max_items=10, max_bytes=1000)
    inside: list[tuple[int, int]] = []
    for items, size, leaves in requests:
        try:
            admission.enter(items, size)
            inside.append((items, size))
        except Overloaded as error:
            assert SHORTEST_WAIT <= error.retry_after <= LONGEST_WAIT
        total = (sum(each for each, _ in inside), sum(each for _, each in inside))
        assert admission.inside == total
        assert len(inside) <= 1 or (total[0] <= 10 and total[1] <= 1000)
        if leaves and inside:
            admission.leave(*inside.pop(0), 0.001)
