"""The share of a consumer group: a partition has one pump at a time, however often it is given and taken, and none is
left behind; one that needs somebody's hand holds up no other."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes.shared_source import Busy, Deposed, Share, shared, turns, until

from tailrace.model.backoff import Pauses
from tailrace.model.errors import ConfigError, PositionsGone
from tailrace.tailers.pumps import shared_pump
from tailrace.tailers.resources import Setup

NONE, A = frozenset[str](), frozenset({"a"})


class Draining(Deposed):
    """A pump whose items end when a test says so, and which leaves its row when a test lets it."""

    in_flight = 1
    running: ClassVar[list[Draining]] = []
    most = 0

    def __init__(self, *given: Any) -> None:
        super().__init__()
        self.ended, self.may_leave, self.leaving = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.in_time, self.drains = asyncio.Event(), 0
        self.left = False

    async def run(self) -> None:
        self.running.append(self)
        type(self).most = max(self.most, len(self.running))
        self.runs.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.leaving.set()
            try:
                await self.may_leave.wait()
                self.left = True
            finally:
                self.running.remove(self)

    async def drain(self, timeout: float) -> bool:
        """Drains: the first call ends with `ended`, each later one with `in_time`."""
        self.drains += 1
        await (self.ended if self.drains == 1 else self.in_time).wait()
        return True

    def let_go(self) -> None:
        self.ended.set()
        self.in_time.set()
        self.may_leave.set()


@pytest.fixture
def draining(monkeypatch: pytest.MonkeyPatch) -> type[Draining]:
    monkeypatch.setattr(Draining, "running", [])
    monkeypatch.setattr(Draining, "most", 0)
    monkeypatch.setattr(shared_pump, "StreamPump", Draining)
    return Draining


async def test_a_partition_that_is_given_and_taken_while_it_is_left_is_left_whole(draining: type[Draining]) -> None:
    # Given a partition that is taken away while items of it are out
    source = Share(A)
    pump = shared(source)
    running = asyncio.create_task(pump.run())
    await until(lambda: len(draining.running) == 1)
    [first] = draining.running
    source.give(NONE)
    await turns()
    # And given again, and taken again, before they ended
    source.give(A)
    await turns()
    source.give(NONE)
    await turns()
    # When they end, and the first pump is on its way out of its row
    first.ended.set()
    async with asyncio.timeout(5):
        await first.leaving.wait()
    first.in_time.set()
    await turns()
    # Then nothing cuts that short
    assert draining.running == [first]
    first.may_leave.set()
    await until(lambda: not draining.running)
    assert first.left
    # And given once more, a new pump has it, alone
    source.give(A)
    await until(lambda: len(draining.running) == 1)
    assert draining.most == 1
    draining.running[0].let_go()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("again", [1, 2])
async def test_a_share_that_ends_leaves_no_pump_behind(draining: type[Draining], again: int) -> None:
    # Given a partition that was taken away with items out, and given again, once or more
    source = Share(A)
    running = asyncio.create_task(shared(source).run())
    await until(lambda: len(draining.running) == 1)
    [first] = draining.running
    for _ in range(again):
        source.give(NONE)
        await turns()
        source.give(A)
        await turns()
    # When the tailer ends
    running.cancel()
    await turns()
    first.may_leave.set()
    async with asyncio.timeout(5):
        await asyncio.gather(running, return_exceptions=True)
    # Then so has the first pump, out of its row, and no other was begun
    assert not draining.running and first.left and draining.most == 1


@given(st.lists(st.sampled_from(["give", "take", "turn", "end", "leave"]), max_size=40))
@settings(deadline=None)
def test_a_partition_has_one_pump_at_a_time_and_ends_as_the_share_says(steps: list[str]) -> None:
    async def story() -> None:
        Draining.running, Draining.most, made = [], 0, list[Draining]()

        def make(*given: Any) -> Draining:
            made.append(Draining())
            return made[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shared_pump, "StreamPump", make)
            source = Share(NONE)
            running = asyncio.create_task(shared(source).run())
            for step in steps:
                if step in ("give", "take"):
                    source.give(A if step == "give" else NONE)
                elif step == "turn":
                    await turns()
                elif made:
                    (made[-1].ended if step == "end" else made[-1].may_leave).set()
            # When everything that is out of what was taken ends
            for _ in range(len(steps) + 3):
                for each in made:
                    if each.drains or each.leaving.is_set():  # it was told to end
                        each.let_go()
                await turns()
            # Then what is given has a pump that stays, and what is not given has none
            staying = [each for each in Draining.running if not each.leaving.is_set()]
            assert len(staying) == len(Draining.running) == len(source.given)
            assert Draining.most <= 1
            for each in made:
                each.let_go()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert not Draining.running and all(each.left for each in made if each.runs.is_set())

    asyncio.run(story())


async def test_a_partition_whose_pump_ended_as_it_was_left_is_served_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a partition that is taken away with items out
    made: list[Busy] = []

    def make(*given: Any) -> Busy:
        made.append(Busy())
        return made[-1]

    monkeypatch.setattr(shared_pump, "StreamPump", make)
    source = Share(A)
    running = asyncio.create_task(shared(source).run())
    await until(lambda: bool(made) and made[0].runs.is_set())
    source.give(NONE)
    async with asyncio.timeout(5):
        await made[0].draining_began.wait()
    # When another owner takes its row, and the group gives it back
    made[0].taken.set()
    source.give(A)
    # Then nothing is waited for that will not be heard of
    await until(lambda: len(made) == 2 and made[1].runs.is_set())
    running.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("stays", [False, True])
async def test_a_partition_that_needs_a_hand_holds_up_no_other_and_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    # Given a share of two partitions, of which something of the first must be mended
    monkeypatch.setattr("tailrace.tailers.rules.pump_restarts.MENDED", Pauses(3600.0, 3600.0))
    trouble = PositionsGone("3 to 5 are gone") if stays else ConfigError("no such schema")
    tried, mended = [], False

    class Unmended(Deposed):
        made, deaf = 0, 0

        def __init__(self, setup: Setup, *given: Any) -> None:
            super().__init__()
            self.row = setup.row

        async def run(self) -> None:
            tried.append(self.row)
            if self.row == "a" and not mended:
                raise trouble
            await super().run()

    monkeypatch.setattr(shared_pump, "StreamPump", Unmended)
    pump = shared(Share(frozenset({"a", "b"})))
    running = asyncio.create_task(pump.run())
    if stays:  # what nothing may pass ends all of it
        with pytest.raises(PositionsGone):
            await running
        return
    await until(lambda: sorted(tried) == ["a", "b"])
    await turns()
    # Then the other one runs, and what must be mended is said
    assert set(pump.pumps) == {"b"} and pump.needs_a_hand == "partition a: no such schema"
    # And somebody who mended it, and says so, need not wait
    mended = True
    pump.pause(False)
    await until(lambda: set(pump.pumps) == {"a", "b"})
    running.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(running, return_exceptions=True)
