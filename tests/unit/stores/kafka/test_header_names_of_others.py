"""Names of headers that others wrote and that are no UTF-8: the record is read all the same, and stops nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.stores.kafka.records import UNREADABLE

BEFORE, AFTER = ("plain", b"1"), ("è", b"2")


def test_kafka_python_reads_the_record_and_those_beside_it() -> None:
    pytest.importorskip("kafka")
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

    from tailrace.stores.kafka import python

    # Given a batch, in which the name of one header is no UTF-8
    builder: Any = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for offset, headers in enumerate([[BEFORE], [BEFORE, ("badname", b"x"), AFTER], [AFTER]]):
        assert builder.append(offset, 0, b"key", b"value", headers) is not None
    data = bytes(builder.build()).replace(b"badname", b"b\xffdname")
    # When it is read, Then all records are there, in their order
    found = python.columns_of([*DefaultRecordBatch(data)])
    assert found.positions == [0, 1, 2]
    assert found.payloads == [b"value"] * 3
    assert found.headers == [
        (("plain", "1"),),
        (("plain", "1"), ("b\\xffdname", "x"), ("è", "2")),
        (("è", "2"),),
    ]


def test_confluent_kafka_that_gives_no_headers_stops_nothing() -> None:
    pytest.importorskip("confluent_kafka")
    from tailrace.stores.kafka import confluent

    class Message:
        """A message with a name of a header that is no UTF-8."""

        def headers(self) -> Any:
            return [(b"b\xffd".decode(), b"x")]

        def offset(self) -> int:
            return 7

        def timestamp(self) -> tuple[int, int]:
            return (1, 1000)

        def key(self) -> bytes:
            return b"k"

        def value(self) -> bytes:
            return b"v"

    found = confluent.columns_of([Message()])
    assert (found.positions, found.payloads, found.headers) == ([7], [b"v"], [((UNREADABLE, "1"),)])
