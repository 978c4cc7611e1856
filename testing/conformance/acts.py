"""The laws that every control store obeys with acts of operators."""

from __future__ import annotations

import asyncio

from ...model.act import FORGOTTEN_AT_ONCE, Act
from ...stores.control.control import Control
from .bench import StoreBench, StoreLaws


def act(what: str, at: float = 5.0) -> Act:
    """An act by the operator Ann, made at `at`."""
    return Act(0, at, "ann@host", "10.0.0.7", what, "mail — è", "the bank is down", '{"a": 1}', "nothing")


class ActLaws(StoreLaws[Control]):
    """Acts are added, ended once, and forgotten from the oldest on."""

    async def test_an_act_stays_as_it_was_told_and_is_ended_once(self, store: StoreBench[Control]) -> None:
        version = (await store.engine.snapshot()).version
        first = await store.engine.begin_act(act("gate pause"))
        second = await store.engine.begin_act(act("purge"))
        assert 0 < first < second
        await store.engine.end_act(first, "done")
        await store.engine.end_act(first, "done again")
        await store.engine.end_act(second + 7, "never begun")
        ended = act("gate pause")._replace(number=first, outcome="done")
        for _ in range(2):
            assert await store.engine.acts() == [act("purge")._replace(number=second), ended]
            await store.reopen()
        assert (await store.engine.snapshot()).version == version

    async def test_acts_are_read_from_the_newest_on_page_by_page(self, store: StoreBench[Control]) -> None:
        assert await store.engine.acts() == []
        numbers = [await store.engine.begin_act(act(f"act {n}")) for n in range(5)]
        found: list[Act] = []
        while page := await store.engine.acts(found[-1].number if found else 0, 2):
            found += page
        assert [each.number for each in found] == numbers[::-1]
        assert [each.what for each in found] == [f"act {n}" for n in range(5)][::-1]

    async def test_acts_that_begin_together_have_numbers_of_their_own(self, store: StoreBench[Control]) -> None:
        numbers = await asyncio.gather(*(store.engine.begin_act(act("reload")) for _ in range(20)))
        assert len({*numbers}) == 20

    async def test_old_acts_are_forgotten_and_numbers_are_never_given_twice(self, store: StoreBench[Control]) -> None:
        # Given four acts of three moments, one of which was ended
        numbers = [await store.engine.begin_act(act("reload", at)) for at in (1.0, 2.0, 3.0, 3.0)]
        await store.engine.end_act(numbers[0], "done")
        # When those of before a moment are forgotten, then the others stay
        assert await store.engine.forget_acts(2.0, 100) == 1
        assert [each.number for each in await store.engine.acts()] == numbers[:0:-1]
        # And those beyond so many, whatever their age
        assert await store.engine.forget_acts(0.0, 1) == 2
        assert [each.number for each in await store.engine.acts()] == [numbers[3]]
        assert await store.engine.forget_acts(0.0, 1) == 0
        # And what is forgotten is not ended any more, and its number is nobody else's
        await store.engine.end_act(numbers[0], "done")
        assert await store.engine.forget_acts(9.0, 0) == 1
        await store.reopen()
        assert await store.engine.begin_act(act("reload")) > numbers[3]
        assert len(await store.engine.acts()) == 1

    async def test_a_clock_that_stepped_back_keeps_nothing_young_from_staying(self, store: StoreBench[Control]) -> None:
        for at in (9.0, 1.0, 9.0):
            await store.engine.begin_act(act("reload", at))
        assert await store.engine.forget_acts(5.0, 100) == 0  # from the oldest on
        assert len(await store.engine.acts()) == 3

    async def test_forgetting_goes_in_steps(self, store: StoreBench[Control]) -> None:
        some = FORGOTTEN_AT_ONCE + 3
        for begin in range(0, some, 100):
            await asyncio.gather(
                *(store.engine.begin_act(act("reload", 1.0)) for _ in range(begin, min(some, begin + 100)))
            )
        assert [await store.engine.forget_acts(2.0, 10_000) for _ in range(3)] == [FORGOTTEN_AT_ONCE, 3, 0]
