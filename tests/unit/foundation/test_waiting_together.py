"""Work that goes on together: one failure ends all, and the task that waits for it is as it was before."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.foundation.together import together


class Work:
    """Work that goes on until a test says otherwise, and notes that it was told to end. It ends with `ends_with`
    then."""

    def __init__(self, ends_with: Exception | None = None, lingers: bool = False) -> None:
        self.began, self.fails, self.cancelled, self.let_go = (asyncio.Event() for _ in range(4))
        self.ends_with = ends_with
        if not lingers:
            self.let_go.set()

    async def run(self) -> None:
        self.began.set()
        try:
            await self.fails.wait()
            raise ValueError("it failed")
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.let_go.wait()
            if self.ends_with is not None:
                raise self.ends_with from None
            raise


async def nothing() -> None: ...


async def test_all_that_return_are_waited_for() -> None:
    await together()
    async with asyncio.timeout(5):
        await together(nothing(), asyncio.sleep(0), nothing())


async def test_one_that_fails_ends_the_others_and_its_error_is_raised() -> None:
    # Given three, of which the last one fails as it is cancelled
    works = [Work(), Work(), Work(ends_with=KeyError("late"))]
    waiting = asyncio.create_task(together(*(work.run() for work in works)))
    await works[2].began.wait()
    # When the second fails
    works[1].fails.set()
    # Then its error is what is raised, once the others have ended
    with pytest.raises(ValueError, match="it failed"):
        await waiting
    assert works[0].cancelled.is_set() and works[2].cancelled.is_set()


async def test_whoever_waited_may_go_on_after_a_failure() -> None:
    """A timeout after `asyncio.TaskGroup` ended in CancelledError on Python 3.11.2."""
    work = Work()
    work.fails.set()
    with pytest.raises(ValueError, match="it failed"):
        await together(work.run())
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()


async def test_to_be_cancelled_weighs_more_than_what_fails_meanwhile() -> None:
    work = Work(ends_with=KeyError("late"))
    waiting = asyncio.create_task(together(work.run()))
    await work.began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("failed", [True, False])
async def test_what_is_cancelled_while_it_ends_still_waits_for_the_end(failed: bool) -> None:
    # Given one that takes its time to end, and is told to
    work, lingering = Work(), Work(lingers=True)
    waiting = asyncio.create_task(together(work.run(), lingering.run()))
    await lingering.began.wait()
    if failed:
        work.fails.set()
    else:
        waiting.cancel()
    await lingering.cancelled.wait()
    # When whoever waits is cancelled then
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.01)
    # Then it waits until all have ended
    assert not waiting.done()
    lingering.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
