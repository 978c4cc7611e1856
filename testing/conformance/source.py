"""The laws that every source obeys (the idea is Benthos' `stream_test_definitions.go`).

A source's test is a short class that derives from `StreamSourceLaws` or `QueueSourceLaws` and says in `bench` how to
make the source and how to put items into what it reads:

    class TestMySource(StreamSourceLaws):
        @pytest.fixture
        async def bench(self):
            yield MyBench()

Laws about the durable position are the pump's, so `StreamSourceLaws` tests the pair of source and frontier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pytest

from ...model.claim import Leased, Settle, State
from ...model.demand import Cell, Demand
from ...sdk.source import Dated, QueueSource, Ranged, Rereader, StreamBatch, StreamSource
from ...tailers.rules.frontier import Frontier
from ...tailers.rules.sparse_frontier import SparseFrontier

PAYLOADS = [b"", b"\xff\xfe\x00 not text", b"x" * (1 << 20), b"plain"]
#: Seconds that a read may take when something is there.
SOON = 5.0
#: Seconds of a lease in these tests: long enough never to end.
LEASE = 60.0


class StreamBench(Protocol):
    """A stream on the bench. `source` makes another source over the same place; `put` adds items to it, in order."""

    def source(self) -> StreamSource: ...

    async def put(self, payloads: Sequence[bytes]) -> None: ...


@runtime_checkable
class ReplayBench(StreamBench, Protocol):
    """A bench of a kind of source that has a `reader` beside its `build`."""

    def reader(self) -> Rereader: ...


async def drained(source: StreamSource, count: int) -> list[StreamBatch]:
    """Reads batches until they hold `count` items in all."""
    batches: list[StreamBatch] = []
    async with asyncio.timeout(SOON * 4):
        while sum(len(batch.positions) for batch in batches) < count:
            batches.extend(await source.read(count, 1 << 24, SOON))
    return batches


async def everything(source: StreamSource) -> list[StreamBatch]:
    """Reads all that is there now."""
    batches: list[StreamBatch] = []
    while more := await source.read(1000, 1 << 24, 0.05):
        batches.extend(more)
    return batches


def payloads(batches: Sequence[StreamBatch]) -> list[bytes]:
    """The payloads of all batches, in order."""
    return [payload for batch in batches for payload in batch.payloads]


class StreamSourceLaws:
    """Laws of sources with positions and a checkpoint."""

    async def test_open_and_close_twice_is_harmless(self, bench: StreamBench) -> None:
        source = bench.source()
        await source.open({})
        await source.open({})
        await source.close()
        await source.close()

    async def test_close_ends_a_pending_read(self, bench: StreamBench) -> None:
        source = bench.source()
        await source.open({})
        pending = asyncio.create_task(source.read(10, 1 << 20, 60.0))
        await asyncio.sleep(0)
        await source.close()
        assert await asyncio.wait_for(pending, SOON) == []

    async def test_an_empty_source_waits_and_a_new_item_ends_the_wait(self, bench: StreamBench) -> None:
        source = bench.source()
        await source.open({})
        assert await source.read(10, 1 << 20, 0.02) == []
        pending = asyncio.create_task(source.read(10, 1 << 20, 60.0))
        await bench.put([b"first"])
        assert payloads(await asyncio.wait_for(pending, SOON)) == [b"first"]
        await source.close()

    async def test_payloads_come_through_untouched(self, bench: StreamBench) -> None:
        await bench.put(PAYLOADS)
        source = bench.source()
        await source.open({})
        assert sorted(payloads(await drained(source, len(PAYLOADS)))) == sorted(PAYLOADS)
        await source.close()

    async def test_nothing_is_read_twice_while_open(self, bench: StreamBench) -> None:
        await bench.put([b"%d" % n for n in range(25)])
        source = bench.source()
        await source.open({})
        batches = await drained(source, 25)
        assert await source.read(10, 1 << 20, 0.02) == []
        places = [(batch.partition, position) for batch in batches for position in batch.positions]
        assert len(places) == len(set(places)) == 25
        for batch in batches:
            assert batch.positions == sorted(batch.positions)
            columns = (batch.times, batch.keys, batch.headers, batch.payloads)
            assert {len(column) for column in columns} == {len(batch.positions)}
        await source.close()

    async def test_a_limit_bounds_a_read_and_nothing_is_lost(self, bench: StreamBench) -> None:
        await bench.put([b"%d" % n for n in range(20)])
        source = bench.source()
        await source.open({})
        found: list[bytes] = []
        while len(found) < 20:
            batches = await source.read(3, 1 << 20, SOON)
            assert 1 <= sum(len(batch.positions) for batch in batches) <= 3
            found.extend(payloads(batches))
        assert sorted(found) == sorted(b"%d" % n for n in range(20))
        await source.close()

    async def test_an_item_larger_than_the_bytes_allowed_is_read_alone(self, bench: StreamBench) -> None:
        await bench.put([b"x" * 1000, b"y" * 1000])
        source = bench.source()
        await source.open({})
        assert len(payloads(await source.read(10, 10, SOON))) == 1
        await source.close()

    async def test_after_a_reopen_what_is_settled_is_not_read_and_the_rest_is(self, bench: StreamBench) -> None:
        await bench.put([b"%d" % n for n in range(12)])
        source = bench.source()
        await source.open({})
        batches = await drained(source, 12)
        await source.close()
        names = {batch.partition for batch in batches}
        for name in names:
            mine = [(position, payload) for batch in batches if batch.partition == name
                    for position, payload in zip(batch.positions, batch.payloads, strict=True)]  # fmt: skip
            kind = SparseFrontier if source.capabilities.sparse else Frontier
            frontier = kind(mine[0][0])
            frontier.read([position for position, _ in mine])
            frontier.settle([position for index, (position, _) in enumerate(mine) if index != 2])
            frontier.advance()
            assert frontier.position <= mine[2][0], "settling out of order never passes an unsettled item"
            again = bench.source()
            await again.open({name: frontier.position})
            second = kind(frontier.position, frontier.encode())
            run: list[bytes] = []
            for batch in await everything(again):
                if batch.partition == name:
                    wanted = second.read(batch.positions, batch.absent)
                    run.extend(batch.payloads if wanted is None else [batch.payloads[index] for index in wanted])
            assert run == [mine[2][1]]
            await again.close()

    async def test_identities_are_stable_and_items_can_be_read_again(self, bench: StreamBench) -> None:
        await bench.put([b"%d" % n for n in range(10)])
        source = bench.source()
        await source.open({})
        batches = await drained(source, 10)
        if not source.capabilities.rereads:
            pytest.skip("this source does not reread")
        for batch in batches:
            chosen = batch.positions[::2]
            again = await source.reread(batch.partition, chosen)
            assert again.positions == chosen and again.payloads == batch.payloads[::2] and again.absent == []
            never = batch.positions[-1] + 10**9
            assert (await source.reread(batch.partition, [never])).absent == [never]
        await source.close()

    async def test_what_was_settled_is_read_again_by_a_reader_that_nobody_opened(self, bench: StreamBench) -> None:
        # Given a source whose items were read
        await bench.put([b"%d" % n for n in range(10)])
        source = bench.source()
        await source.open({})
        batches = await drained(source, 10)
        if not source.capabilities.replays:
            await source.close()
            pytest.skip("this source cannot be replayed")
        # When somebody else reads them again
        reader: Rereader = bench.reader() if isinstance(bench, ReplayBench) else bench.source()
        ends = await reader.ends()
        for batch in batches:
            name, positions = batch.partition, batch.positions
            again = await reader.reread(name, positions)
            assert (again.positions, again.payloads) == (positions, batch.payloads)
            assert positions[-1] < ends[name]
            if isinstance(reader, Ranged):
                found = await reader.between(name, positions[0], positions[-1], 2)
                assert found.positions == positions[:2]
                assert (await reader.between(name, positions[-1] + 1, ends[name] + 9, 2)).positions == []
            if isinstance(reader, Dated):
                assert await reader.position_at(name, 1.0) <= positions[0]
                assert await reader.position_at(name, 4e9) == ends[name]
        await reader.close()
        # Then the first one reads on as if nothing had happened
        await bench.put([b"more"])
        assert payloads(await drained(source, 1)) == [b"more"]
        await source.close()

    async def test_ends_measure_what_is_left(self, bench: StreamBench) -> None:
        await bench.put([b"%d" % n for n in range(5)])
        source = bench.source()
        await source.open({})
        batches = await drained(source, 5)
        last = {batch.partition: batch.positions[-1] for batch in batches}
        ends = await source.ends()
        assert {name: ends[name] for name in last} == {name: position + 1 for name, position in last.items()}
        await source.close()


class QueueBench(Protocol):
    """A queue on the bench. `source` makes a source; `put` adds items of function `f` at priority 2."""

    def source(self) -> QueueSource: ...

    async def put(self, payloads: Sequence[bytes]) -> None: ...


DEMAND = Demand({Cell("f", 2): 1000}, total=1000, max_bytes=1 << 24)


class QueueSourceLaws:
    """Laws of sources that claim and settle item by item."""

    async def opened(self, bench: QueueBench) -> QueueSource:
        source = bench.source()
        await source.open()
        return source

    async def leased(self, source: QueueSource, demand: Demand = DEMAND) -> Leased:
        leased = await source.lease(demand, LEASE, SOON)
        assert leased is not None
        return leased

    async def test_open_and_close_twice_is_harmless(self, bench: QueueBench) -> None:
        source = await self.opened(bench)
        await source.open()
        await source.close()
        await source.close()

    async def test_an_empty_source_waits(self, bench: QueueBench) -> None:
        source = await self.opened(bench)
        assert await source.lease(DEMAND, LEASE, 0.02) is None
        pending = asyncio.create_task(source.lease(DEMAND, LEASE, SOON))
        await asyncio.sleep(0)
        await bench.put([b"first"])
        leased = await asyncio.wait_for(pending, SOON)
        assert leased is not None and leased.payloads == [b"first"]
        await source.close()

    async def test_payloads_come_through_untouched(self, bench: QueueBench) -> None:
        await bench.put(PAYLOADS)
        source = await self.opened(bench)
        found: list[bytes] = []
        while len(found) < len(PAYLOADS):
            found.extend((await self.leased(source)).payloads)
        assert sorted(found) == sorted(PAYLOADS)
        await source.close()

    async def test_what_is_claimed_is_not_claimed_again(self, bench: QueueBench) -> None:
        await bench.put([b"1", b"2"])
        source = await self.opened(bench)
        leased = await self.leased(source)
        assert len(leased.ids) == 2 and leased.attempts == [1, 1]
        assert await source.lease(DEMAND, LEASE, 0.02) is None
        await source.close()

    async def test_what_is_settled_never_returns_and_settling_twice_is_harmless(self, bench: QueueBench) -> None:
        await bench.put([b"1", b"2"])
        source = await self.opened(bench)
        leased = await self.leased(source)
        await source.settle(leased.fence, leased.ids, [])
        await source.settle(leased.fence, leased.ids, [])
        await source.close()
        await source.open()
        assert await source.lease(DEMAND, LEASE, 0.02) is None
        await source.close()

    async def test_a_returned_item_keeps_its_identity_and_its_attempts(self, bench: QueueBench) -> None:
        await bench.put([b"1"])
        source = await self.opened(bench)
        first = await self.leased(source)
        back = Settle(first.ids[0], first.fence, State.RETRIABLE_FAILURE, attempts=1)
        assert await source.settle(first.fence, [], [back]) == []
        second = await self.leased(source)
        assert second.ids == first.ids and second.attempts == [2] and second.fence > first.fence
        assert await source.settle(first.fence, first.ids, []) == first.ids, "an older fence changes nothing"
        await source.close()

    async def test_what_is_handed_back_costs_no_attempt(self, bench: QueueBench) -> None:
        await bench.put([b"1"])
        source = await self.opened(bench)
        first = await self.leased(source)
        await source.settle(first.fence, [], [Settle(first.ids[0], first.fence, State.NEW)])
        assert (await self.leased(source)).attempts == [1]
        await source.close()

    async def test_an_item_returned_with_a_delay_is_not_seen_early(self, bench: QueueBench) -> None:
        await bench.put([b"1"])
        source = await self.opened(bench)
        if not source.capabilities.delays:
            pytest.skip("this source cannot delay")
        leased = await self.leased(source)
        late = Settle(leased.ids[0], leased.fence, State.RETRIABLE_FAILURE, delay=9e9, attempts=1)
        await source.settle(leased.fence, [], [late])
        assert await source.lease(DEMAND, LEASE, 0.02) is None
        await source.close()

    async def test_a_demand_bounds_a_claim(self, bench: QueueBench) -> None:
        await bench.put([b"%d" % n for n in range(10)])
        source = await self.opened(bench)
        assert len((await self.leased(source, Demand({Cell("f", 2): 3}, total=100))).ids) == 3
        assert len((await self.leased(source, Demand({Cell("f", 2): 100}, total=2))).ids) == 2
        assert await source.lease(Demand({Cell("other", 2): 9}, total=9), LEASE, 0.02) is None
        await source.close()

    async def test_a_renewal_names_what_is_lost(self, bench: QueueBench) -> None:
        await bench.put([b"1", b"2"])
        source = await self.opened(bench)
        if not source.capabilities.renews:
            pytest.skip("this source does not renew")
        leased = await self.leased(source)
        await source.settle(leased.fence, leased.ids[:1], [])
        renewed = await source.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)
        assert renewed.lost == leased.ids[:1] and renewed.lease > 0
        await source.close()
