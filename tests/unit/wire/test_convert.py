"""What one side can say the other can read: flights, outcomes and specs of any content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tailrace.sdk.model.errors import TailraceError
from tailrace.sdk.model.function_spec import FunctionSpec
from tailrace.sdk.model.priority import Priority
from tailrace.sdk.model.retry import BACKOFFS, Retry
from tailrace.sdk.model.workload import Ended, Extra, Flight, Kind, Outcomes, ref
from tailrace.sdk.wire import convert
from tailrace.sdk.wire.v1 import common_pb2 as pb

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(0, 1e12)
headers = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
kinds = st.builds(Kind, texts, st.integers(0, 5), texts, texts)
extras = st.builds(
    Extra,
    key=texts,
    headers=headers,
    crashes=st.integers(0, 100),
    expires_at=numbers,
    alone=st.booleans(),
    progress=texts,
)
items = st.tuples(kinds, texts, st.binary(max_size=64), st.integers(1, 10_000), st.none() | extras)


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    drawn = draw(st.lists(items, max_size=20))
    return Flight(
        number=draw(st.integers(0, 2**53)),
        fence=draw(st.integers(0, 2**63 - 1)),
        kinds=[item[0] for item in drawn],
        ids=[item[1] for item in drawn],
        payloads=[item[2] for item in drawn],
        attempts=[item[3] for item in drawn],
        extras={index: item[4] for index, item in enumerate(drawn) if item[4] is not None},
        wants_result=draw(st.booleans()),
    )


def carried(flight: Flight, writer: convert.KindWriter, reader: convert.KindReader) -> Flight:
    message = pb.Items(wants_result=flight.wants_result)
    columns = (flight.kinds, flight.ids, flight.payloads, flight.attempts)
    convert.write_items(message, writer, columns, flight.extras)
    arrived = pb.Items.FromString(message.SerializeToString())
    return convert.read_items(arrived, reader, flight.number, flight.fence)


@given(st.lists(flights(), max_size=4))
def test_flights_arrive_as_they_were_sent_through_one_table_of_kinds(sent: list[Flight]) -> None:
    writer, reader = convert.KindWriter(), convert.KindReader()
    for flight in sent:
        assert carried(flight, writer, reader) == flight


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=30))
def test_numbers_of_kinds_are_used_again_without_confusion(batches: list[list[int]]) -> None:
    # Given a table much smaller than the kinds there are, but never smaller than those of one batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert, "KIND_TABLE", 3)
        writer, reader = convert.KindWriter(), convert.KindReader()
        # When batches of any kinds pass, then each item arrives as the kind it was
        for batch in batches:
            flight = Flight(1, 1, [Kind(f"f{each}") for each in batch], [""] * len(batch), [b""] * len(batch), [1])
            flight.attempts *= len(batch)
            assert carried(flight, writer, reader).kinds == flight.kinds


def test_a_kind_is_named_once_and_kinds_of_one_number_share_one_object() -> None:
    writer, reader = convert.KindWriter(), convert.KindReader()
    flight = Flight(1, 1, [Kind("f"), Kind("g"), Kind("f")], ["a", "b", "c"], [b""] * 3, [1, 1, 1])
    named = []
    for _ in range(2):
        message = pb.Items()
        convert.write_items(message, writer, (flight.kinds, flight.ids, flight.payloads, flight.attempts), {})
        named.append(len(message.new_kinds))
        arrived = convert.read_items(message, reader, 1, 1)
        assert arrived.kinds[0] is arrived.kinds[2]
    assert named == [2, 0]


def test_first_attempts_cost_no_bytes() -> None:
    message = pb.Items()
    convert.write_items(message, convert.KindWriter(), ([Kind("f")] * 3, ["a"] * 3, [b""] * 3, [1] * 3), {})
    assert not message.attempt


ended = st.builds(
    Ended,
    st.integers(0, 20),
    texts,
    st.none() | numbers,
    st.none() | st.binary(max_size=32),
    st.booleans(),
    texts,
)
refs = st.integers(0, 2**40).map(lambda number: ref(number, number % 1024))


@given(st.lists(refs, max_size=20), st.dictionaries(refs, ended, max_size=8))
def test_outcomes_arrive_as_they_were_sent(succeeded: list[int], others: dict[int, Ended]) -> None:
    outcomes = Outcomes(succeeded, others)
    message = pb.Outcomes()
    convert.write_outcomes(message, outcomes)
    assert convert.read_outcomes(pb.Outcomes.FromString(message.SerializeToString())) == outcomes


retries = st.builds(
    Retry,
    max_attempts=st.integers(1, 10_000),
    backoff=st.sampled_from(BACKOFFS),
    first=st.floats(0, 1e6),
    max=st.floats(0, 1e6),
    delays=st.lists(st.floats(0, 1e6), min_size=1, max_size=4).map(tuple),
    jitter=st.floats(0, 1),
    max_crashes=st.integers(1, 100),
    from_due=st.booleans(),
)
specs = st.builds(
    FunctionSpec,
    name=texts,
    version=texts,
    priority=st.sampled_from(Priority),
    retry=retries,
    timeout=st.none() | st.floats(0, 1e6),
    pool=texts,
    isolation=st.sampled_from(["shared", "process"]),
    description=texts,
)


@given(specs)
def test_a_functions_spec_arrives_as_it_was_announced(spec: FunctionSpec) -> None:
    message = convert.function_to_wire(spec)
    assert convert.function_from_wire(pb.Function.FromString(message.SerializeToString())) == spec
    assert (message.name, message.version, message.priority) == (spec.name, spec.version, int(spec.priority))


@pytest.mark.parametrize("spec", [b"", b"\xff", b"[]", b"{}", b'{"name": "f"}', b"null"])
def test_a_spec_that_cannot_be_read_is_an_error_that_servers_answer(spec: bytes) -> None:
    readable: Any = (ValueError, KeyError, TypeError, TailraceError)  # what the scheduler and the gateway turn into one
    with pytest.raises(readable):
        convert.function_from_wire(pb.Function(name="f", spec=spec))
