"""The names of items, and the words that must never change their meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.claim import State
from tailrace.model.errors import InvalidRequest
from tailrace.model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from tailrace.model.outcome import TERMINAL, Outcome
from tailrace.model.priority import DEFAULT_PRIORITY, Priority
from tailrace.model.retry import Retry
from tailrace.model.workload import (
    FLIGHT_ITEMS,
    INDEX_BITS,
    INDEX_MASK,
    Ended,
    Flight,
    Kind,
    Outcomes,
    ref,
)


@given(st.integers(0, 1 << 50), st.integers(0, FLIGHT_ITEMS - 1))
def test_a_ref_names_its_flight_and_its_index(flight: int, index: int) -> None:
    name = ref(flight, index)
    assert (name >> INDEX_BITS, name & INDEX_MASK) == (flight, index)
    assert name < 1 << 63


def test_refs_rise_with_flight_and_index() -> None:
    names = [ref(flight, index) for flight in range(3) for index in (0, 1, FLIGHT_ITEMS - 1)]
    assert names == sorted(set(names))


def test_lengths_are_counts_of_items() -> None:
    assert len(Flight(1, 1, [Kind("f")] * 2, ["a", "b"], [b"", b""], [1, 1])) == 2
    assert len(Outcomes([1, 2], {3: Ended(2)})) == 3


def test_the_numbers_of_outcomes_never_change() -> None:
    assert {outcome.name: int(outcome) for outcome in Outcome} == {
        "SUCCESS": 1,
        "RETRY": 2,
        "FATAL": 3,
        "THROTTLED": 4,
        "LOST": 5,
        "DROPPED": 6,
        "EXPIRED": 7,
        "CANCELLED": 8,
        "HELD": 9,
    }
    assert {outcome.name for outcome in TERMINAL} == {"SUCCESS", "FATAL", "DROPPED", "EXPIRED", "CANCELLED"}


def test_the_numbers_of_states_never_change_and_ended_ones_are_ten_or_more() -> None:
    assert {state.label: int(state) for state in State} == {
        "new": 0,
        "retriable_failure": 1,
        "enqueued": 2,
        "processing": 4,
        "success": 10,
        "fatal_failure": 11,
        "cancelled": 12,
        "dropped": 13,
        "expired": 14,
    }


def test_priorities_are_read_by_name_and_rank() -> None:
    for level in Priority:
        assert Priority.parse(level.label) is level
        assert Priority.parse(level.label.upper()) is level
        assert Priority.parse(int(level)) is level
    assert Kind("f").priority == int(DEFAULT_PRIORITY)
    assert [level.label for level in sorted(Priority)] == ["interactive", "user_visible", "eventual", "reporting"]


@pytest.mark.parametrize("value", ["urgent", "", 4, -1])
def test_an_unknown_priority_is_refused_with_the_known_ones(value: str | int) -> None:
    with pytest.raises(InvalidRequest, match="interactive, user_visible, eventual, reporting"):
        Priority.parse(value)


def test_a_function_comes_back_from_its_plain_data() -> None:
    spec = FunctionSpec("f", "1", Priority.REPORTING, Retry(backoff="list", delays=(1, "5m")), 1.5, "p", "process", "é")
    for each in (spec, FunctionSpec("g")):
        assert spec_from_dict(spec_to_dict(each)) == each
