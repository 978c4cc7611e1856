"""The laws that every store of usage obeys."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from ...model.usage import MOST_FUNCTIONS, MOST_KINDS, OTHERS, UsageReport, UsageRow, of_unit
from ...stores.usage.usage import Usage
from .bench import MODEL, StoreBench, StoreLaws

NOW = 494_000


def report(number: int, *rows: UsageRow, scheduler: str = "one@host:1") -> UsageReport:
    return UsageReport(scheduler, number, list(rows))


def row(function: str = "f", tenant: str = "", items: int = 1, micros: int = 10, hour: int = NOW) -> UsageRow:
    return UsageRow(hour, function, tenant, "", items, micros)


async def everything(store: StoreBench[Usage]) -> list[UsageRow]:
    return [each for hour in await store.engine.hours() for each in await store.engine.of_hour(hour)]


def total(rows: Iterable[UsageRow]) -> tuple[int, int]:
    told = [*rows]
    return sum(each.items for each in told), sum(each.micros for each in told)


#: A report is told again, with another number or by another scheduler; None: the store is opened again.
stories = st.lists(
    st.one_of(
        st.none(),
        st.builds(
            lambda scheduler, number, rows: report(number, *rows, scheduler=scheduler),
            st.sampled_from(["a", "b"]),
            st.integers(1, 4),
            st.lists(
                st.builds(
                    row,
                    st.sampled_from(["f", "g/\u00e9"]),
                    st.sampled_from(["", "t"]),
                    st.integers(0, 5),
                    st.integers(0, 1 << 40),
                    st.sampled_from([NOW - 1, NOW]),
                ),
                max_size=4,
            ),
        ),
    ),
    max_size=10,
)


class UsageLaws(StoreLaws[Usage]):
    """Laws of usage: a report counts once; a count stays; an hour is bounded, and its sums leave nothing out."""

    async def test_a_new_store_has_nothing(self, store: StoreBench[Usage]) -> None:
        assert await store.engine.hours() == []
        assert await store.engine.of_hour(NOW) == []

    async def test_what_is_reported_comes_back_whole(self, store: StoreBench[Usage]) -> None:
        whole = UsageRow(NOW, "mail.send", "acme/\u00e8", "smtp,stripe", 7, 1 << 44)
        other = UsageRow(NOW - 3, "mail.send", "", "", 0, 5)
        assert await store.engine.add(report(1, whole, other), 0)
        for _ in range(2):
            assert await store.engine.hours() == [NOW - 3, NOW]
            assert await everything(store) == [other, whole]
            await store.reopen()

    async def test_reports_add_up_over_schedulers(self, store: StoreBench[Usage]) -> None:
        await store.engine.add(report(1, row(items=2, micros=5)), 0)
        await store.engine.add(report(2, row(items=1, micros=7), row("g")), 0)
        await store.engine.add(report(1, row(items=4, micros=1), scheduler="two"), 0)
        assert await everything(store) == [row(items=7, micros=13), row("g")]

    async def test_a_report_counts_once_however_often_it_is_told(self, store: StoreBench[Usage]) -> None:
        assert await store.engine.add(report(1, row()), 0)
        assert await store.engine.add(report(2, row()), 0)
        for number in (1, 2):
            assert not await store.engine.add(report(number, row()), 0)
            await store.reopen()
        # And a gap is no reason to refuse: what lies in it is lost
        assert await store.engine.add(report(7, row()), 0)
        assert not await store.engine.add(report(6, row()), 0)
        assert await everything(store) == [row(items=3, micros=30)]

    async def test_an_empty_report_is_harmless(self, store: StoreBench[Usage]) -> None:
        assert await store.engine.add(report(1), NOW)
        assert await store.engine.hours() == []

    async def test_hours_before_those_kept_are_forgotten_and_not_told_anew(self, store: StoreBench[Usage]) -> None:
        await store.engine.add(report(1, *(row(hour=NOW - back) for back in range(4))), 0)
        await store.engine.add(report(2, row(hour=NOW - 3), row()), NOW - 1)
        assert [(each.hour, each.items) for each in await everything(store)] == [(NOW - 1, 1), (NOW, 2)]

    async def test_beyond_the_bound_of_an_hour_kinds_are_summed_by_their_function(
        self, store: StoreBench[Usage]
    ) -> None:
        # Given an hour as full as it may be, but for two kinds
        many = [row("f", f"t{number:05}") for number in range(MOST_KINDS - 2)]
        await store.engine.add(report(1, *many), 0)
        # When four more come, two of the same function, beside those that are known and those of another hour
        more = [row("f", "new"), row("g", "new"), row("g", "newer", 2, 3), row("g", "newest", 3, 4)]
        await store.engine.add(report(2, *more, row("f", "t00000"), row("g", "newest", hour=NOW + 1)), 0)
        # Then the first two are apart, the others are one sum, and nothing is lost
        found = await store.engine.of_hour(NOW)
        assert row("f", "new") in found and row("g", "new") in found
        assert row("g", OTHERS, 5, 7) in found
        assert row("f", "t00000", 2, 20) in found
        assert len(found) == MOST_KINDS + 1
        assert total(found) == total([*many, *more, row()])
        assert await store.engine.of_hour(NOW + 1) == [row("g", "newest", hour=NOW + 1)]

    async def test_beyond_that_bound_too_all_is_one_sum(self, store: StoreBench[Usage]) -> None:
        many = [row(f"f{number:05}") for number in range(MOST_KINDS + MOST_FUNCTIONS + 3)]
        for number, first in enumerate(range(0, len(many), 4000), 1):
            await store.engine.add(report(number, *many[first : first + 4000]), 0)
        await store.engine.add(report(9, row("g", "t")), 0)
        found = await store.engine.of_hour(NOW)
        assert len(found) == MOST_KINDS + MOST_FUNCTIONS + 1
        assert row(OTHERS, OTHERS, 4, 40) in found
        assert total(found) == total([*many, row()])
        # And what was used of a unit is summed with that unit alone
        units = [UsageRow(NOW, f"u{number}", "t", of_unit("openai", "tokens"), 0, 7) for number in range(3)]
        await store.engine.add(report(10, *units), 0)
        found = await store.engine.of_hour(NOW)
        assert UsageRow(NOW, OTHERS, OTHERS, of_unit("", "tokens"), 0, 21) in found
        assert row(OTHERS, OTHERS, 4, 40) in found

    @MODEL
    @given(story=stories)
    def test_any_story_is_the_sum_of_the_reports_that_were_new(self, story: list[UsageReport | None]) -> None:
        async def told(store: StoreBench[Usage]) -> None:
            last: dict[str, int] = {}
            sums: dict[tuple[int, str, str], tuple[int, int]] = {}
            for step in story:
                if step is None:
                    await store.reopen()
                    continue
                fresh = step.number > last.get(step.scheduler, 0)
                assert await store.engine.add(step, 0) == fresh
                if fresh:
                    last[step.scheduler] = step.number
                    for each in step.rows:
                        items, micros = sums.get(each[:3], (0, 0))
                        sums[each[:3]] = (items + each.items, micros + each.micros)
                assert {each[:3]: each[4:] for each in await everything(store)} == sums

        self.with_store(told)
