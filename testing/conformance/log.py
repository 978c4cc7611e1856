"""The laws that every log obeys."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...model.errors import InvalidRequest
from ...stores.log.log import Bounds, Log, Record, Records
from .bench import MODEL, MOMENT, SOON, StoreBench, StoreLaws

BYTES = 1 << 24


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(str(first + index).encode()) for index in range(count)]


def records_of(found: Records) -> list[Record]:
    return [Record(*each) for each in zip(found.payloads, found.keys, found.headers, strict=True)]


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
any_record = st.builds(
    Record,
    st.binary(max_size=40),
    st.just("") | texts,
    st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
)
appends = st.tuples(st.just("append"), st.lists(any_record, max_size=12))
reads = st.tuples(st.just("read"), st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 300)))
trims = st.tuples(st.just("trim"), st.integers(0, 60))
reopens = st.tuples(st.just("reopen"), st.none())


@dataclass
class Model:
    """The model of a log of one partition: everything ever appended, and the number of records forgotten at its
    head."""

    records: list[Record] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    start: int = 0

    def expected(self, position: int, limit: int, max_bytes: int) -> tuple[int, list[Record], bool]:
        """The first position of a read, the records within its limit, and whether any must come."""
        begin = max(position, self.start)
        there = self.records[begin : begin + limit]
        return begin, there, bool(there)


class LogLaws(StoreLaws[Log]):
    """Laws of logs: positions are dense, order is kept, reads return what was appended, and the head can be
    forgotten."""

    async def test_a_stream_keeps_its_sign(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(3))
        sign = await store.engine.life("s")
        await store.engine.append("s", 1, numbered(2))
        await store.engine.trim("s", 0, 3)
        assert sign and await store.engine.life("s") == sign
        await store.reopen()
        assert await store.engine.life("s") == sign

    async def test_a_created_stream_is_empty_in_every_partition(self, store: StoreBench[Log]) -> None:
        await store.engine.create("s", 3)
        assert await store.engine.bounds("s") == dict.fromkeys(range(3), Bounds(0, 0))

    async def test_creating_again_adds_partitions_and_never_removes_any(self, store: StoreBench[Log]) -> None:
        await store.engine.create("s", 2)
        await store.engine.append("s", 1, numbered(4))
        await store.engine.create("s", 3)
        await store.engine.create("s", 1)
        assert await store.engine.bounds("s") == {0: Bounds(0, 0), 1: Bounds(0, 4), 2: Bounds(0, 0)}

    @pytest.mark.parametrize("partitions", [0, -1, 1_000_000])
    async def test_an_absurd_number_of_partitions_is_refused(self, store: StoreBench[Log], partitions: int) -> None:
        with pytest.raises(InvalidRequest, match="partitions"):
            await store.engine.create("s", partitions)
        assert await store.engine.streams() == []

    async def test_a_negative_partition_is_refused(self, store: StoreBench[Log]) -> None:
        with pytest.raises(InvalidRequest):
            await store.engine.append("s", -1, numbered(1))

    async def test_the_first_append_makes_the_stream(self, store: StoreBench[Log]) -> None:
        assert await store.engine.append("s", 1, numbered(2)) == 0
        assert (await store.engine.bounds("s"))[1] == Bounds(0, 2)

    async def test_an_append_says_where_it_went_and_positions_are_dense(self, store: StoreBench[Log]) -> None:
        firsts = [await store.engine.append("s", 0, numbered(count)) for count in (1, 5, 2)]
        assert firsts == [0, 1, 6]
        found = await store.engine.read("s", 0, 0, 100, BYTES)
        assert found.positions == list(range(8))

    async def test_an_empty_append_changes_nothing(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(2))
        assert await store.engine.append("s", 0, []) == 2
        assert await store.engine.bounds("s") == {0: Bounds(0, 2)}

    async def test_partitions_and_streams_do_not_mix(self, store: StoreBench[Log]) -> None:
        await store.engine.create("s", 2)
        await store.engine.append("s", 0, [Record(b"s0")])
        await store.engine.append("s", 1, [Record(b"s1")])
        await store.engine.append("t", 0, [Record(b"t0")])
        found = [(await store.engine.read(*place, 0, 10, BYTES)).payloads for place in (("s", 0), ("s", 1), ("t", 0))]
        assert found == [[b"s0"], [b"s1"], [b"t0"]]

    async def test_a_record_comes_back_whole(self, store: StoreBench[Log]) -> None:
        # Given records with keys and headers of every kind, some sharing their headers
        shared = (("a", "1"), ("a", "2"), ("", ""))
        given_records = [
            Record(b"", "", ()),
            Record(b"\x00\xff" * 100, "key/é\n", shared),
            Record(b"x", "", shared),
            Record(b"y", "k" * 500, (("ü", "\x00"),)),
        ]
        await store.engine.append("s", 0, given_records)
        # When they are read, before and after a restart, then they are equal, with the time of their append
        for _ in range(2):
            found = await store.engine.read("s", 0, 0, 10, BYTES)
            assert records_of(found) == given_records
            assert found.times == [store.clock.wall()] * 4
            await store.reopen()

    async def test_each_append_has_its_own_time(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(1))
        store.clock.advance(2.5)
        await store.engine.append("s", 0, numbered(1))
        first, second = (await store.engine.read("s", 0, 0, 10, BYTES)).times
        assert second - first == 2.5

    async def test_a_read_says_what_the_clock_says_that_dates_appends(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(1))
        store.clock.advance(2.5)
        found = await store.engine.read("s", 0, 0, 10, BYTES)
        assert (found.now, found.now - found.times[0]) == (store.clock.wall(), 2.5)

    async def test_reading_at_the_end_or_beyond_finds_nothing(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(3))
        for position in (3, 4, 1 << 40):
            assert (await store.engine.read("s", 0, position, 10, BYTES)).positions == []

    async def test_what_does_not_exist_reads_as_empty(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(3))
        assert (await store.engine.read("nothing", 0, 0, 10, BYTES)).positions == []
        assert (await store.engine.read("s", 7, 0, 10, BYTES)).positions == []
        assert await store.engine.bounds("nothing") == {}

    async def test_a_read_keeps_its_limit_and_goes_on_from_there(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(5))
        await store.engine.append("s", 0, numbered(5, 5))
        seen: list[bytes] = []
        while (page := await store.engine.read("s", 0, len(seen), 3, BYTES)).positions:
            assert len(page.positions) <= 3
            seen.extend(page.payloads)
        assert seen == [record.payload for record in numbered(10)]

    async def test_a_read_keeps_its_bytes_but_brings_one_at_least(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, [Record(b"x" * 100)] * 4)
        assert len((await store.engine.read("s", 0, 0, 10, 250)).positions) in (1, 2)
        assert (await store.engine.read("s", 0, 2, 10, 1)).positions == [2]
        assert (await store.engine.read("s", 0, 0, 0, BYTES)).positions == []

    async def test_a_large_append_is_one_dense_run(self, store: StoreBench[Log]) -> None:
        records = numbered(2500) + [Record(b"z" * 400_000)] * 6
        assert await store.engine.append("s", 0, records) == 0
        seen: list[bytes] = []
        while (page := await store.engine.read("s", 0, len(seen), 1000, 1 << 20)).positions:
            assert page.positions[0] == len(seen)
            seen.extend(page.payloads)
        assert seen == [record.payload for record in records]

    async def test_appends_at_the_same_time_do_not_interleave(self, store: StoreBench[Log]) -> None:
        await store.engine.create("s", 1)
        groups = [[Record(f"{group}.{index}".encode()) for index in range(7)] for group in range(20)]
        firsts = await asyncio.gather(*(store.engine.append("s", 0, group) for group in groups))
        found = await store.engine.read("s", 0, 0, 1000, BYTES)
        assert found.positions == list(range(140))
        for first, group in zip(firsts, groups, strict=True):
            assert found.payloads[first : first + 7] == [record.payload for record in group]

    async def test_a_trimmed_head_is_forgotten_for_good(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(6))
        await store.engine.append("s", 0, numbered(6, 6))
        await store.engine.trim("s", 0, 8)
        for _ in range(2):
            assert await store.engine.bounds("s") == {0: Bounds(8, 12)}
            found = await store.engine.read("s", 0, 0, 100, BYTES)
            assert found.positions == [8, 9, 10, 11]
            assert found.payloads == [b"8", b"9", b"10", b"11"]
            await store.reopen()

    async def test_a_trim_never_goes_back_nor_beyond_the_end(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(6))
        await store.engine.trim("s", 0, 4)
        await store.engine.trim("s", 0, 2)
        assert await store.engine.bounds("s") == {0: Bounds(4, 6)}
        await store.engine.trim("s", 0, 100)
        assert await store.engine.bounds("s") == {0: Bounds(6, 6)}
        await store.engine.trim("nothing", 0, 5)
        await store.engine.trim("s", 9, 5)

    async def test_positions_go_on_after_everything_was_trimmed(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(6))
        await store.engine.trim("s", 0, 6)
        await store.reopen()
        assert await store.engine.bounds("s") == {0: Bounds(6, 6)}
        assert await store.engine.append("s", 0, [Record(b"next")]) == 6
        assert (await store.engine.read("s", 0, 0, 10, BYTES)).payloads == [b"next"]

    async def test_a_wait_ends_with_an_append(self, store: StoreBench[Log]) -> None:
        await store.engine.create("s", 2)
        waiting = asyncio.create_task(store.engine.wait("s", {0: 0, 1: 0}, SOON * 10))
        await asyncio.sleep(0)
        await store.engine.append("s", 1, numbered(1))
        await asyncio.wait_for(waiting, SOON)

    async def test_a_wait_for_what_is_there_ends_at_once(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(3))
        await asyncio.wait_for(store.engine.wait("s", {0: 2}, SOON * 10), SOON)

    async def test_a_wait_sees_a_partition_and_a_stream_made_later(self, store: StoreBench[Log]) -> None:
        waiting = [
            asyncio.create_task(store.engine.wait("s", {}, SOON * 10)),
            asyncio.create_task(store.engine.wait("s", {0: 0}, SOON * 10)),
        ]
        await asyncio.sleep(0)
        await store.engine.append("s", 1, numbered(1))
        await asyncio.wait_for(asyncio.gather(*waiting), SOON)

    async def test_a_wait_for_nothing_ends_in_time(self, store: StoreBench[Log]) -> None:
        await store.engine.append("s", 0, numbered(3))
        await asyncio.wait_for(store.engine.wait("s", {0: 3}, MOMENT), SOON)

    async def test_streams_are_listed_in_order_and_remembered(self, store: StoreBench[Log]) -> None:
        for name in ("b", "due.z", "a", "ü/x"):
            await store.engine.create(name, 1)
        for _ in range(2):
            assert await store.engine.streams() == ["a", "b", "due.z", "ü/x"]
            await store.reopen()

    @MODEL
    @given(steps=st.lists(appends | reads | trims | reopens, max_size=25))
    def test_any_story_is_the_story_of_a_list(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[Log]) -> None:
            model = Model()
            await store.engine.create("s", 1)
            for step in steps:
                await _play(store, model, step)

        self.with_store(story)


async def _play(store: StoreBench[Log], model: Model, step: tuple[str, object]) -> None:
    """Takes one step on the store and on the model, and compares them."""
    log, (what, given_value) = store.engine, step
    if what == "append":
        assert isinstance(given_value, list)
        store.clock.advance(1.0)
        assert await log.append("s", 0, given_value) == len(model.records)
        model.records.extend(given_value)
        model.times.extend([store.clock.wall()] * len(given_value))
    elif what == "read":
        assert isinstance(given_value, tuple)
        begin, there, any_there = model.expected(*given_value)
        found = await log.read("s", 0, *given_value)
        count = len(found.positions)
        assert found.positions == list(range(begin, begin + count)) or not count
        assert records_of(found) == there[:count]
        assert found.times == model.times[begin : begin + count]
        assert (count > 0) == any_there
        size = sum(map(len, found.payloads))
        assert count <= 1 or size - len(found.payloads[-1]) <= given_value[2]
        assert count <= 1 or size <= given_value[2]
    elif what == "trim":
        assert isinstance(given_value, int)
        await log.trim("s", 0, given_value)
        model.start = max(model.start, min(given_value, len(model.records)))
    else:
        await store.reopen()
    assert await store.engine.bounds("s") == {0: Bounds(model.start, len(model.records))}
