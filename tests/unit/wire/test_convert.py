"""Conversion to the wire and back: flights, outcomes, functions and the table of kinds."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.priority import Priority
from tailrace.model.retry import Retry
from tailrace.model.workload import UNWRITABLE, Ended, Extra, Flight, Kind, Outcomes, Owned
from tailrace.wire import convert as subject
from tailrace.wire.convert import (
    KindReader,
    KindWriter,
    function_from_wire,
    function_to_wire,
    headers_from_wire,
    headers_to_wire,
    owned_from_wire,
    owned_to_wire,
    read_items,
    read_outcomes,
    write_items,
    write_outcomes,
)
from tailrace.wire.v1 import common_pb2 as pb

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)
small = st.integers(0, (1 << 32) - 1)
kinds = st.builds(Kind, texts, st.integers(0, 3), texts, texts)
headers = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
numbers = st.floats(allow_nan=False)
amounts = st.lists(st.tuples(texts, numbers), max_size=3).map(tuple)
extras = st.builds(Extra, texts, headers, small, numbers, st.booleans(), texts, st.booleans(), amounts)


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    count = draw(st.integers(0, 8))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=count, max_size=count))

    few = draw(st.lists(kinds, min_size=1, max_size=3))
    return Flight(
        number=draw(st.integers(0, 1 << 50)),
        fence=draw(st.integers(0, 1 << 62)),
        kinds=column(st.sampled_from(few)),  # type: ignore[arg-type]
        ids=column(texts),  # type: ignore[arg-type]
        payloads=column(st.binary(max_size=10)),  # type: ignore[arg-type]
        attempts=column(st.sampled_from([1, 1, 2, 1000])),  # type: ignore[arg-type]
        extras=draw(st.dictionaries(st.integers(0, max(0, count - 1)), extras, max_size=count)) if count else {},
        wants_result=draw(st.booleans()),
    )


def sent(flight: Flight, writer: KindWriter) -> pb.Items:
    items = pb.Items(wants_result=flight.wants_result)
    write_items(items, writer, (flight.kinds, flight.ids, flight.payloads, flight.attempts), flight.extras)
    return pb.Items.FromString(items.SerializeToString())


@given(st.lists(flights(), max_size=5))
def test_flights_come_back_the_same(given_flights: list[Flight]) -> None:
    writer, reader = KindWriter(), KindReader()
    for flight in given_flights:
        assert read_items(sent(flight, writer), reader, flight.number, flight.fence) == flight


@given(st.integers(1, 6), st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30))
def test_a_small_table_of_kinds_wraps_around_correctly(size: int, batches: list[list[int]]) -> None:
    # Given a table smaller than the number of kinds, but large enough for any one batch
    with mock.patch.object(subject, "KIND_TABLE", size):
        writer, reader = KindWriter(), KindReader()
        for batch in batches:
            few = [Kind(f"f{number}") for number in batch if number in sorted(set(batch))[:size]]
            items = pb.Items()
            writer.write(few, items)
            # When a batch is sent, then its kinds are the ones meant, and numbers stay within the table
            assert all(number < size for number in items.kind)
            assert reader.read(pb.Items.FromString(items.SerializeToString())) == few


def test_a_kind_is_named_once_while_the_table_has_room() -> None:
    writer, reader = KindWriter(), KindReader()
    given_kinds = [Kind("f"), Kind("g"), Kind("f"), Kind("f", 0)]
    first, second = pb.Items(), pb.Items()
    writer.write(given_kinds, first)
    writer.write(given_kinds, second)
    assert (len(first.new_kinds), len(second.new_kinds)) == (3, 0)
    assert reader.read(first) == reader.read(second) == given_kinds


def test_equal_kinds_come_back_as_one_shared_object() -> None:
    writer, reader = KindWriter(), KindReader()
    items = pb.Items()
    writer.write([Kind("f"), Kind("f")], items)
    one, other = reader.read(items)
    assert one is other


def test_the_table_holds_more_kinds_than_a_flight_has_items() -> None:
    # Naming a batch's kinds must never take a number that the same batch needs, over and over
    assert subject.KIND_TABLE > 1024


def test_first_attempts_take_no_room() -> None:
    items = pb.Items()
    write_items(items, KindWriter(), ([Kind("f")] * 3, ["a", "b", "c"], [b""] * 3, [1, 1, 1]), {})
    assert len(items.attempt) == 0
    assert read_items(items, KindReader(), 1, 1).attempts == [1, 1, 1]


ended = st.builds(
    Ended,
    st.integers(1, 9),
    texts,
    st.none() | numbers,
    st.none() | st.binary(max_size=10),
    st.booleans(),
    texts,
    used=st.lists(st.tuples(texts, texts, numbers), max_size=3).map(tuple),
)
refs = st.integers(0, (1 << 64) - 1)


@given(st.builds(Outcomes, st.lists(refs, max_size=10), st.dictionaries(refs, ended, max_size=5)))
def test_outcomes_come_back_the_same(outcomes: Outcomes) -> None:
    message = pb.Outcomes()
    write_outcomes(message, outcomes)
    assert read_outcomes(pb.Outcomes.FromString(message.SerializeToString())) == outcomes


@given(st.lists(st.sampled_from(["well", "half of a pair \udcff", "also well"]), max_size=6))
def test_an_end_that_cannot_be_written_costs_itself_alone(reasons: list[str]) -> None:
    outcomes = Outcomes([1], {2 + index: Ended(3, reason, result=b"x") for index, reason in enumerate(reasons)})
    message = pb.Outcomes()
    write_outcomes(message, outcomes)
    read = read_outcomes(pb.Outcomes.FromString(message.SerializeToString()))
    assert (read.succeeded, list(read.ended)) == ([1], list(outcomes.ended))
    for ref, end in read.ended.items():
        assert end == (outcomes.ended[ref] if outcomes.ended[ref].reason.isascii() else UNWRITABLE)


@pytest.mark.parametrize(("after", "result"), [(None, None), (0.0, b""), (1.5, b"null")])
def test_nothing_and_an_empty_value_are_not_the_same(after: float | None, result: bytes | None) -> None:
    message = pb.Outcomes()
    write_outcomes(message, Outcomes([], {7: Ended(1, after=after, result=result)}))
    found = read_outcomes(message).ended[7]
    assert (found.after, found.result) == (after, result)


@given(headers)
def test_headers_keep_their_order_and_repeats(given_headers: tuple[tuple[str, str], ...]) -> None:
    assert headers_from_wire(headers_to_wire(given_headers)) == given_headers


retries = st.builds(
    Retry,
    st.integers(1, 10_000),
    st.sampled_from(["exponential", "quartic", "list"]),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=3).map(tuple),
    st.floats(0, 1),
    st.integers(1, 100),
    st.booleans(),
)
specs = st.builds(
    FunctionSpec,
    texts,
    texts,
    st.sampled_from(Priority),
    retries,
    st.none() | st.floats(0, 1e6),
    texts,
    st.sampled_from(["shared", "process"]),
    texts,
)


@given(specs)
def test_functions_come_back_the_same(spec: FunctionSpec) -> None:
    message = function_to_wire(spec)
    assert (message.name, message.version, message.priority) == (spec.name, spec.version, int(spec.priority))
    assert function_from_wire(pb.Function.FromString(message.SerializeToString())) == spec


@pytest.mark.parametrize(
    "owned",
    [
        Owned("orders", "0", 7, "0", range(5, 8)),
        Owned("orders", "", 7, "0", [5, 9, 11]),
        Owned("due", "", 7, "", [5, 6, 5], [("f", 2), ("g", 1)]),
    ],
)
def test_where_items_are_is_read_as_it_was_said(owned: Owned) -> None:
    again = owned_from_wire(owned_to_wire(owned), 3)
    assert again._replace(positions=list(again.positions)) == owned._replace(positions=list(owned.positions))
    assert list(again.by_part([0, 2])) == ([("f", [0]), ("g", [2])] if owned.parts else [("0", [0, 2])])


def test_parts_that_do_not_name_every_item_are_refused() -> None:
    message = owned_to_wire(Owned("due", "", 7, "", [5, 6, 5], [("f", 1), ("g", 1)]))
    with pytest.raises(ValueError, match="3 items are said to be 2"):
        owned_from_wire(message, 3)
