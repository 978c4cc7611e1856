"""Several items as one record: they come out as they went in, at any size; a record that is no parcel stays itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.delay_service.parcels import PARCEL, items_in, packed, unpacked
from tailrace.model.errors import InvalidPayload
from tailrace.stores.log.batch import BATCH_BYTES, BATCH_RECORDS, MAX_RECORD
from tailrace.stores.log.log import Record

headers = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=2).map(
    lambda own: (("tailrace-item", "[]"), *own)
)
records = st.lists(st.builds(Record, st.binary(max_size=20), st.text(max_size=5), headers), min_size=1, max_size=30)


@given(records)
def test_what_was_packed_comes_out_whole_and_in_order(items: list[Record]) -> None:
    parcels = packed("delay.1s", items)
    assert [item for parcel in parcels for item in unpacked(parcel)] == items
    assert sum(items_in(parcel.headers) for parcel in parcels) == len(items)


def test_parcels_are_bounded_in_items_and_bytes() -> None:
    many = [Record(b"x", "", (("tailrace-item", str(n)),)) for n in range(BATCH_RECORDS + 5)]
    assert [items_in(parcel.headers) for parcel in packed("s", many)] == [BATCH_RECORDS, 5]
    large = [Record(b"x" * (BATCH_BYTES // 2)) for _ in range(5)]
    assert all(len(parcel.payload) < 2 * BATCH_BYTES for parcel in packed("s", large))


def test_one_alone_is_no_parcel_so_the_largest_item_fits() -> None:
    largest = Record(b"x" * MAX_RECORD)
    assert packed("s", [largest]) == [largest]
    with pytest.raises(InvalidPayload, match="stream 's': a record has"):
        packed("s", [Record(b"x" * (MAX_RECORD + 1))])


@pytest.mark.parametrize("payload", [b"", b"what is this", b"\x94\x90\xc0\x90\xc0", b"\x94\x91\xc4\x01x\xc0\x90\xc0"])
def test_a_parcel_that_cannot_be_read_stays_one_record(payload: bytes) -> None:
    broken = Record(payload, "", ((PARCEL, "3"),))
    assert unpacked(broken) == [broken]
