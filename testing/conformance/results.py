"""The laws that every store of results obeys. Its engine is made with RETENTION and MAX_BYTES."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ...stores.results.results import Results
from .bench import MODEL, StoreBench, StoreLaws

#: Seconds that results are kept in these tests, and how many bytes of them.
RETENTION = 100.0
MAX_BYTES = 10_000

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=20), max_size=3)),
        st.tuples(st.just("advance"), st.sampled_from([1.0, 60.0, 99.0, 101.0])),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=15,
)


class ResultLaws(StoreLaws[Results]):
    """A result is found until its time is over or newer ones need its room."""

    async def test_a_result_is_found_by_its_id(self, store: StoreBench[Results]) -> None:
        given_results = {"a": b"1", "b/é": b"\x00\xff" * 100, "empty": b""}
        await store.engine.put(given_results)
        for _ in range(2):
            assert {id: await store.engine.get(id) for id in given_results} == given_results
            await store.reopen()

    async def test_an_unknown_id_is_none(self, store: StoreBench[Results]) -> None:
        await store.engine.put({})
        assert await store.engine.get("unknown") is None

    async def test_a_later_result_of_the_same_id_replaces_it(self, store: StoreBench[Results]) -> None:
        await store.engine.put({"a": b"1"})
        await store.engine.put({"a": b"2"})
        assert await store.engine.get("a") == b"2"

    async def test_a_result_ends_with_its_time(self, store: StoreBench[Results]) -> None:
        await store.engine.put({"a": b"1"})
        store.clock.advance(RETENTION - 1)
        assert await store.engine.get("a") == b"1"
        store.clock.advance(2)
        assert await store.engine.get("a") is None

    async def test_the_time_counts_from_the_last_put(self, store: StoreBench[Results]) -> None:
        await store.engine.put({"a": b"1"})
        store.clock.advance(RETENTION - 1)
        await store.engine.put({"a": b"2", "b": b"3"})
        store.clock.advance(RETENTION - 1)
        await store.engine.put({"c": b""})
        assert await store.engine.get("a") == b"2"
        assert await store.engine.get("b") == b"3"

    async def test_the_oldest_go_when_there_is_no_room(self, store: StoreBench[Results]) -> None:
        for id in "abcde":
            await store.engine.put({id: id.encode() * (MAX_BYTES // 4)})
        assert await store.engine.get("a") is None
        for id in "bcde":
            assert await store.engine.get(id) == id.encode() * (MAX_BYTES // 4)

    async def test_what_was_pushed_out_is_known_and_what_never_was_here_or_is_over_is_not(
        self, store: StoreBench[Results]
    ) -> None:
        for id in "abcdef":
            await store.engine.put({id: id.encode() * (MAX_BYTES // 4)})
        for _ in range(2):
            assert {id for id in "abcdefg" if await store.engine.gone(id)} == {"a", "b"}
            await store.reopen()
        store.clock.advance(RETENTION + 1)
        assert await store.engine.get("c") is None and not await store.engine.gone("c")

    async def test_who_has_most_makes_room_and_the_others_keep_theirs(self, store: StoreBench[Results]) -> None:
        # Given small results of a tenant, and of nobody, which are the oldest
        small = {"a": b"1" * (MAX_BYTES // 10), "none": b"2" * (MAX_BYTES // 10)}
        await store.engine.put_of(small, {"a": "acme"})
        # When another tenant fills the room several times over, also through a restart
        for number in range(20):
            await store.engine.put_of({f"b{number}": b"x" * (MAX_BYTES // 5)}, {f"b{number}": "beta"})
            if number == 10:
                await store.reopen()
        # Then its own oldest went
        assert {id: await store.engine.get(id) for id in small} == small
        assert await store.engine.get("b0") is None
        assert await store.engine.get("b19") is not None
        # And one that is replaced by another tenant's is that one's
        await store.engine.put_of({"a": small["a"]}, {"a": "beta"})
        await store.engine.put({"none": small["none"]})
        for number in range(20):
            await store.engine.put_of({f"c{number}": b"x" * (MAX_BYTES // 5)}, {f"c{number}": "acme"})
        assert await store.engine.get("none") == small["none"]

    async def test_where_nobody_is_a_tenants_the_oldest_of_all_go_and_else_those_of_whom_has_most(
        self, store: StoreBench[Results]
    ) -> None:
        await store.engine.put_of({"a": b"1" * (MAX_BYTES // 10)}, {"a": "acme"})
        for number in range(20):
            await store.engine.put({f"b{number}": b"x" * (MAX_BYTES // 5)})
        assert await store.engine.get("a") is not None
        assert await store.engine.get("b0") is None
        assert await store.engine.get("b19") is not None

    async def test_a_replaced_result_takes_room_once(self, store: StoreBench[Results]) -> None:
        for _ in range(10):
            await store.engine.put({"a": b"x" * (MAX_BYTES // 2), "b": b"y" * (MAX_BYTES // 2)})
        assert await store.engine.get("a") is not None
        assert await store.engine.get("b") is not None

    async def test_one_that_is_larger_than_all_the_room_leaves_a_store_that_works(
        self, store: StoreBench[Results]
    ) -> None:
        await store.engine.put({"huge": b"x" * (MAX_BYTES + 1)})
        await store.engine.put({"a": b"1"})
        assert await store.engine.get("huge") is None
        assert await store.engine.get("a") == b"1"

    @MODEL
    @given(steps=steps)
    def test_any_story_within_the_room_is_that_of_a_dictionary_with_times(
        self, steps: list[tuple[str, object]]
    ) -> None:
        async def story(store: StoreBench[Results]) -> None:
            known: dict[str, tuple[float, bytes]] = {}
            for what, value in steps:
                if what == "put":
                    assert isinstance(value, dict)
                    await store.engine.put(value)
                    known |= {id: (store.clock.wall(), result) for id, result in value.items()}
                elif what == "advance":
                    assert isinstance(value, float)
                    store.clock.advance(value)
                else:
                    await store.reopen()
                for id in "abcd":
                    time, result = known.get(id, (0.0, b""))
                    there = store.clock.wall() - time <= RETENTION
                    assert await store.engine.get(id) == (result if there else None)

        self.with_store(story)
