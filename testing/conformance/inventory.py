"""The laws that every inventory obeys."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ...stores.inventory.inventory import Inventory, InventoryEntry
from .bench import MODEL, StoreBench, StoreLaws

entries = st.lists(st.builds(InventoryEntry, st.sampled_from("abcdé"), st.sampled_from(["1", "2", "é 3"])), max_size=10)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), entries),
        st.tuples(st.just("read"), st.tuples(st.integers(0, 20), st.integers(1, 20))),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("forget"), st.none()),
    ),
    max_size=20,
)


async def everything(store: StoreBench[Inventory], source: str = "s") -> list[InventoryEntry]:
    """Reads all entries of a source, whose positions must be dense from 0 on."""
    found = await store.engine.read(source, 0, 1 << 30)
    assert found.positions == list(range(len(found.names)))
    return [InventoryEntry(*each) for each in zip(found.names, found.versions, strict=True)]


class InventoryLaws(StoreLaws[Inventory]):
    """Each name and version once, in the order of discovery, at dense positions."""

    async def test_new_entries_get_the_next_positions_in_the_order_offered(self, store: StoreBench[Inventory]) -> None:
        assert await store.engine.offer("s", [InventoryEntry("b", "1"), InventoryEntry("a", "1")]) == 2
        assert await store.engine.offer("s", [InventoryEntry("c", "1")]) == 1
        for _ in range(2):
            assert await everything(store) == [
                InventoryEntry("b", "1"),
                InventoryEntry("a", "1"),
                InventoryEntry("c", "1"),
            ]
            assert await store.engine.end("s") == 3
            await store.reopen()

    async def test_an_entry_seen_before_is_not_new(self, store: StoreBench[Inventory]) -> None:
        await store.engine.offer("s", [InventoryEntry("a", "1"), InventoryEntry("b", "1")])
        assert (
            await store.engine.offer(
                "s", [InventoryEntry("b", "1"), InventoryEntry("c", "1"), InventoryEntry("a", "1")]
            )
            == 1
        )
        assert await everything(store) == [InventoryEntry("a", "1"), InventoryEntry("b", "1"), InventoryEntry("c", "1")]

    async def test_another_version_is_another_entry(self, store: StoreBench[Inventory]) -> None:
        assert await store.engine.offer("s", [InventoryEntry("a", "1")]) == 1
        assert await store.engine.offer("s", [InventoryEntry("a", "2")]) == 1
        assert await everything(store) == [InventoryEntry("a", "1"), InventoryEntry("a", "2")]

    async def test_an_entry_offered_twice_at_once_is_taken_once(self, store: StoreBench[Inventory]) -> None:
        assert await store.engine.offer("s", [InventoryEntry("a", "1"), InventoryEntry("a", "1")]) == 1
        assert await everything(store) == [InventoryEntry("a", "1")]

    async def test_offers_at_the_same_time_share_the_positions_without_a_gap(
        self, store: StoreBench[Inventory]
    ) -> None:
        offers = [
            [InventoryEntry(str(number), "1") for number in range(first, first + 10)] for first in range(0, 50, 5)
        ]
        counts = await asyncio.gather(*(store.engine.offer("s", offer) for offer in offers))
        assert sum(counts) == 55
        assert sorted(await everything(store)) == sorted(InventoryEntry(str(number), "1") for number in range(55))

    async def test_an_empty_offer_and_an_unknown_source_are_nothing(self, store: StoreBench[Inventory]) -> None:
        assert await store.engine.offer("s", []) == 0
        assert await store.engine.end("s") == 0
        assert await everything(store) == []

    async def test_a_read_begins_where_it_is_told_and_keeps_its_limit(self, store: StoreBench[Inventory]) -> None:
        await store.engine.offer("s", [InventoryEntry(str(number), "1") for number in range(10)])
        found = await store.engine.read("s", 3, 4)
        assert found.positions == [3, 4, 5, 6]
        assert found.names == ["3", "4", "5", "6"]
        assert (await store.engine.read("s", 10, 4)).positions == []

    async def test_names_are_kept_to_the_letter(self, store: StoreBench[Inventory]) -> None:
        names = ['"quoted"', "new\nline", "ü/é\u0301/😀", "123", "null", "", " ", "%_*?", "a" * 3000, "\\n"]
        given_entries = [InventoryEntry(name, name) for name in names]
        await store.engine.offer("s", given_entries)
        assert await store.engine.offer("s", given_entries) == 0
        assert await everything(store) == given_entries

    async def test_sources_do_not_mix_and_forgetting_one_leaves_the_others(self, store: StoreBench[Inventory]) -> None:
        for source in ("s", "t"):
            await store.engine.offer(source, [InventoryEntry("a", "1"), InventoryEntry("b", "1")])
        await store.engine.forget("s")
        assert await everything(store) == []
        assert await everything(store, "t") == [InventoryEntry("a", "1"), InventoryEntry("b", "1")]
        assert await store.engine.offer("s", [InventoryEntry("b", "1")]) == 1
        assert await everything(store) == [InventoryEntry("b", "1")]

    async def test_the_floor_rises_with_the_greatest_names_and_what_is_under_it_goes(
        self, store: StoreBench[Inventory]
    ) -> None:
        await store.engine.offer("s", [InventoryEntry(name, "") for name in ("b", "a", "é", "d", "c")])
        assert await store.engine.floor("s") == ""
        assert await store.engine.raise_floor("s", 9, 9) == ""
        assert await store.engine.raise_floor("s", 2, 1) == "c"
        for _ in range(2):
            assert await store.engine.floor("s") == "c"
            found = await store.engine.read("s", 0, 10)
            assert (found.positions, found.names) == ([1, 2, 3, 4], ["a", "é", "d", "c"])
            await store.reopen()
        assert await store.engine.raise_floor("s", 4, 9) == "c", "it never goes back"
        assert (await store.engine.read("s", 0, 10)).names == ["é", "d", "c"], "the last one stays, it has the number"
        assert await store.engine.offer("s", [InventoryEntry("f", "")]) == 1 and await store.engine.end("s") == 6
        await store.engine.offer("t", [InventoryEntry("a", "")])
        assert await store.engine.floor("t") == ""
        await store.engine.forget("s")
        assert await store.engine.floor("s") == ""

    @MODEL
    @given(steps=steps)
    def test_any_story_is_the_story_of_a_list_without_repeats(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[Inventory]) -> None:
            known: list[InventoryEntry] = []
            for what, value in steps:
                if what == "offer":
                    assert isinstance(value, list)
                    new = [entry for entry in dict.fromkeys(value) if entry not in known]
                    assert await store.engine.offer("s", value) == len(new)
                    known.extend(new)
                elif what == "read":
                    assert isinstance(value, tuple)
                    position, limit = value
                    found = await store.engine.read("s", position, limit)
                    assert list(zip(found.positions, found.names, found.versions, strict=True)) == [
                        (number, *entry) for number, entry in list(enumerate(known))[position : position + limit]
                    ]
                elif what == "forget":
                    await store.engine.forget("s")
                    known = []
                else:
                    await store.reopen()
                assert await store.engine.end("s") == len(known)
            assert await everything(store) == known

        self.with_store(story)
