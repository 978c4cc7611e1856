"""A tombstone that is read again is the same item as when it was read first."""

from types import SimpleNamespace

import pytest

from tailrace.stores.kafka.python import columns_of
from tailrace.stores.kafka.records import TOMBSTONE
from tailrace.stores.log.log import Bounds
from tailrace.tailers.sources.kafka_reread import reread

PLACE = ("orders", 3)


def record(offset, value, headers=()):
    return SimpleNamespace(offset=offset, timestamp=1000, key=b"k", headers=list(headers), value=value)


class Topic:
    """Three records: one with a value, a tombstone, and one whose value is empty."""

    records = (record(5, b"1"), record(6, None, [("trace", b"t")]), record(7, b""))

    async def again(self, place, position, limit):
        assert place == PLACE
        return columns_of([each for each in self.records if each.offset >= position][:limit])

    async def bounds(self, place):
        return Bounds(5, 8)


async def test_a_tombstone_keeps_its_header_and_its_empty_payload():
    batch = await reread(Topic(), "orders-3", PLACE, [5, 6, 7], skip=False)
    assert (batch.positions, batch.payloads) == ([5, 6, 7], [b"1", b"", b""])
    assert batch.headers == [(), (("trace", "t"), (TOMBSTONE, "1")), ()]


@pytest.mark.parametrize("wanted", [[6], [5, 6], [6, 7]])
async def test_one_that_is_skipped_is_absent_and_an_empty_value_is_not(wanted):
    batch = await reread(Topic(), "orders-3", PLACE, wanted, skip=True)
    assert (batch.positions, batch.absent, batch.lost) == ([at for at in wanted if at != 6], [6], [])
