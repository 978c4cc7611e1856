"""The laws that every ownership store obeys (L10 to L12)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...model.errors import InvalidRequest, StaleFence
from ...stores.ownership.ownership import OwnedRow, Owner, Ownership
from .bench import MODEL, StoreBench, StoreLaws

LEASE = 36.0

sources = st.sampled_from([("s", ""), ("s", "1"), ("ü/s", "")])
steps = st.lists(
    st.one_of(
        # How many writes of the row ago the taker read it.
        st.tuples(st.just("take"), sources, st.integers(0, 2)),
        # How many epochs ago the writer took it.
        st.tuples(st.just("renew"), sources, st.integers(0, 2)),
        st.tuples(st.just("release"), sources, st.integers(0, 2)),
        st.tuples(st.just("reopen"), sources, st.none()),
        st.tuples(st.just("back"), sources, st.integers(1, 10_000)),
    ),
    max_size=25,
)


async def take(store: StoreBench[Ownership], source: str = "s", holder: str = "a", seen: int | None = None) -> Owner:
    """Takes a source as somebody who just read its row."""
    if seen is None:
        row = await store.engine.read(source, "")
        seen = row.version if row else 0
    owner = await store.engine.take(source, "", holder, LEASE, seen)
    assert owner is not None
    return owner


async def renew(store: StoreBench[Ownership], owner: Owner, schedulers: Sequence[str], seen: int = 0) -> Owner:
    """Renews a source as its owner."""
    renewed = await store.engine.renew("s", "", owner.epoch, schedulers, seen)
    assert renewed is not None
    return renewed


class OwnershipLaws(StoreLaws[Ownership]):
    """Laws of ownership: of all who saw the same row one takes it; every write raises the version, every take the
    epoch."""

    async def test_what_nobody_took_is_not_there(self, store: StoreBench[Ownership]) -> None:
        assert await store.engine.read("s", "") is None
        assert await store.engine.list(10) == []

    async def test_a_row_is_as_it_was_taken_even_after_a_restart(self, store: StoreBench[Ownership]) -> None:
        owner = await store.engine.take("ü/s", "7", "host/1", 12.5, 0)
        assert owner is not None
        assert owner == Owner(owner.version, owner.epoch, "host/1", 12.5, ())
        await store.reopen()
        assert await store.engine.read("ü/s", "7") == owner
        assert await store.engine.read("ü/s", "") is None

    async def test_of_those_who_saw_the_same_row_one_takes_it(self, store: StoreBench[Ownership]) -> None:
        # Given three that wait out the lease of one owner
        seen = (await take(store, holder="dead")).version
        # When all try
        answers = [await store.engine.take("s", "", holder, LEASE, seen) for holder in "abc"]
        # Then the first has it, and the row is as it was told
        assert answers[1:] == [None, None]
        assert await store.engine.read("s", "") == answers[0]

    async def test_of_those_who_saw_no_row_one_takes_it(self, store: StoreBench[Ownership]) -> None:
        first = await store.engine.take("s", "", "a", LEASE, 0)
        assert await store.engine.take("s", "", "b", LEASE, 0) is None
        assert await store.engine.read("s", "") == first

    async def test_a_version_of_a_row_that_is_not_there_takes_nothing(self, store: StoreBench[Ownership]) -> None:
        assert await store.engine.take("s", "", "a", LEASE, 1) is None
        assert await store.engine.read("s", "") is None

    async def test_who_waits_out_a_lease_loses_to_a_renewal_it_did_not_see(self, store: StoreBench[Ownership]) -> None:
        owner = await take(store)
        renewed = await renew(store, owner, [])
        assert renewed.version > owner.version
        assert await store.engine.take("s", "", "b", LEASE, owner.version) is None
        assert await store.engine.take("s", "", "b", LEASE, renewed.version) is not None

    async def test_who_asked_for_adoption_loses_to_a_scheduler_listed_meanwhile(
        self, store: StoreBench[Ownership]
    ) -> None:
        # Given a taker that read which schedulers to ask
        owner = await take(store)
        seen = (await renew(store, owner, ["x"])).version
        # When the owner lists another one before it pushes to it
        listed = await renew(store, owner, ["x", "ü/y"])
        # Then what the taker was told by the first is not enough
        assert await store.engine.take("s", "", "b", LEASE, seen) is None
        await store.reopen()
        row = await store.engine.read("s", "")
        assert row == listed
        assert row is not None
        assert row.schedulers == ("x", "ü/y")

    async def test_a_renewal_that_is_late_takes_no_scheduler_off_the_list(self, store: StoreBench[Ownership]) -> None:
        # Given a renewal that its owner had no answer to, and which has not come yet
        owner = await take(store)
        # When the next one comes first, with a scheduler that was joined since
        listed = await renew(store, owner, ["x", "y"], owner.version)
        # Then the late one changes nothing, whether once or again
        for _ in range(2):
            assert await store.engine.renew("s", "", owner.epoch, ["x"], owner.version) is None
        await store.reopen()
        assert await store.engine.read("s", "") == listed
        # And who reads what it is now goes on; an epoch that is over is told so, whatever it saw
        assert (await renew(store, owner, ["x"], listed.version)).schedulers == ("x",)
        await take(store, holder="b")
        with pytest.raises(StaleFence):
            await store.engine.renew("s", "", owner.epoch, ["x"], listed.version)

    async def test_a_take_lists_what_it_names_and_is_a_new_epoch_even_by_the_same_holder(
        self, store: StoreBench[Ownership]
    ) -> None:
        first = await take(store)
        renewed = await renew(store, first, ["x"])
        second = await store.engine.take("s", "", "a", LEASE, renewed.version, ["y", "z"])
        assert second is not None
        assert second.epoch > first.epoch
        assert second.schedulers == ("y", "z")
        assert await store.engine.read("s", "") == second
        assert (await take(store)).schedulers == ()

    async def test_a_former_epoch_writes_nothing(self, store: StoreBench[Ownership]) -> None:
        old = await take(store, holder="a")
        new = await take(store, holder="b")
        with pytest.raises(StaleFence, match="'s'"):
            await store.engine.renew("s", "", old.epoch, ["x"])
        with pytest.raises(StaleFence, match="'s'"):
            await store.engine.release("s", "", old.epoch)
        assert await store.engine.read("s", "") == new

    async def test_a_row_never_taken_is_neither_renewed_nor_released(self, store: StoreBench[Ownership]) -> None:
        with pytest.raises(StaleFence):
            await store.engine.renew("s", "", 1, [])
        with pytest.raises(StaleFence):
            await store.engine.release("s", "", 1)
        assert await store.engine.read("s", "") is None

    async def test_a_released_row_is_empty_and_its_epoch_is_over(self, store: StoreBench[Ownership]) -> None:
        owner = await take(store)
        owner = await renew(store, owner, ["x"])
        await store.engine.release("s", "", owner.epoch)
        await store.reopen()
        row = await store.engine.read("s", "")
        assert row is not None
        assert (row.epoch, row.holder, row.schedulers) == (owner.epoch, "", ())
        assert row.version > owner.version
        # An epoch that was given back is not resumed (L10); giving it back twice is harmless.
        with pytest.raises(StaleFence, match="released"):
            await store.engine.renew("s", "", owner.epoch, [])
        await store.engine.release("s", "", owner.epoch)
        assert await store.engine.read("s", "") == row
        assert (await take(store, holder="b")).epoch > owner.epoch

    async def test_an_epoch_and_a_counter_of_32_bits_fit_a_signed_64_bit_number(
        self, store: StoreBench[Ownership]
    ) -> None:
        assert 0 < (await take(store)).epoch < 1 << 31
        # And they go on rising when the clock was beyond its end for a moment (a server's own is not asked to be).
        store.clock.jump(5e9)
        wild = await take(store)
        store.clock.jump(-5e9)
        after = await take(store)
        assert wild.epoch < after.epoch < (1 << 31) - (1 << 20)

    @pytest.mark.parametrize("lease", [0.0, -1.0, float("inf"), float("nan")])
    async def test_a_lease_is_a_positive_number(self, store: StoreBench[Ownership], lease: float) -> None:
        with pytest.raises(InvalidRequest, match="lease"):
            await store.engine.take("s", "", "a", lease, 0)
        with pytest.raises(InvalidRequest, match="name"):
            await store.engine.take("s", "", "", LEASE, 0)
        assert await store.engine.read("s", "") is None

    async def test_pages_follow_each_other_without_gap_or_repeat(self, store: StoreBench[Ownership]) -> None:
        keys = [(f"s{number // 3}", str(number % 3) if number % 3 else "") for number in range(12)]
        for source, partition in reversed(keys):
            await store.engine.take(source, partition, "a", LEASE, 0)
        seen: list[OwnedRow] = []
        while page := await store.engine.list(5, (seen[-1].source, seen[-1].partition) if seen else ("", "")):
            assert len(page) <= 5
            seen.extend(page)
        assert [(each.source, each.partition) for each in seen] == sorted(keys)
        for each in seen:
            assert await store.engine.read(each.source, each.partition) == each.owner

    @MODEL
    @given(steps=steps)
    def test_in_any_story_versions_and_epochs_rise_and_only_the_newest_writes(
        self, steps: list[tuple[str, tuple[str, str], int]]
    ) -> None:
        async def story(store: StoreBench[Ownership]) -> None:
            rows: dict[tuple[str, str], list[Owner]] = {}  # as each write left it
            for what, (source, partition), value in steps:
                written = rows.setdefault((source, partition), [])
                epochs = sorted({row.epoch for row in written})
                now = written[-1] if written else None
                if what == "take":
                    versions = [0, *[row.version for row in written]]
                    seen = versions[max(0, len(versions) - 1 - value)]
                    owner = await store.engine.take(source, partition, f"h{len(written)}", LEASE, seen)
                    assert (owner is not None) == (seen == versions[-1])
                    if owner is not None:
                        assert owner.version > versions[-1]
                        assert not epochs or owner.epoch > epochs[-1]
                        assert owner == Owner(owner.version, owner.epoch, f"h{len(written)}", LEASE)
                        written.append(owner)
                elif what in ("renew", "release"):
                    epoch = epochs[-1 - value] if value < len(epochs) else -1
                    current = now is not None and epoch == now.epoch
                    if what == "renew" and now is not None and current and now.holder:
                        renewal = (source, partition, epoch, ["x", str(value)])
                        assert await store.engine.renew(*renewal, now.version + 1 + value) is None
                        assert await store.engine.read(source, partition) == now
                        owner = await store.engine.renew(*renewal, now.version)
                        assert owner is not None
                        assert owner == now._replace(version=owner.version, schedulers=("x", str(value)))
                        assert owner.version > now.version
                        written.append(owner)
                    elif what == "release" and now is not None and current:
                        await store.engine.release(source, partition, epoch)
                        row = await store.engine.read(source, partition)
                        assert row is not None
                        assert row == now._replace(version=row.version, holder="", schedulers=())
                        assert row.version > now.version or row == now
                        written.append(row)
                    else:
                        with pytest.raises(StaleFence):
                            if what == "renew":
                                await store.engine.renew(source, partition, epoch, [])
                            else:
                                await store.engine.release(source, partition, epoch)
                elif what == "back":
                    store.clock.jump(-float(value))
                else:
                    await store.reopen()
                assert await store.engine.read(source, partition) == (written[-1] if written else None)
            listed = {(each.source, each.partition): each.owner for each in await store.engine.list(100)}
            assert listed == {key: written[-1] for key, written in rows.items() if written}

        self.with_store(story)
