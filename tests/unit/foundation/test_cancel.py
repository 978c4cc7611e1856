"""Ending a task and waiting for it, without losing a cancellation of one's own."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.foundation.lifecycle import cancel, end_all


async def test_a_cancelled_task_has_ended_and_so_has_one_that_is_cancelled_twice():
    # Given a task that waits
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    # When it is cancelled, and again
    await cancel(task)
    await cancel(task)
    # Then it is over, and nobody was told of an error
    assert task.cancelled()


async def test_what_a_task_had_failed_with_is_raised():
    # Given a task that fails as it ends
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("the file is gone")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    # When it is cancelled, Then whoever ends it learns why it failed
    with pytest.raises(ValueError, match="the file is gone"):
        await cancel(task)


async def test_a_cancellation_of_the_caller_is_not_taken_for_that_of_the_task():
    # Given a task that takes its time to end, and a caller that waits for it
    may_end, asked = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            asked.set()
            await may_end.wait()

    task = asyncio.create_task(slow())
    await asyncio.sleep(0)
    caller = asyncio.create_task(cancel(task))
    await asked.wait()
    # When the caller itself is cancelled, Then it ends at once as cancelled, and the task in its own time
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_several_have_ended_whatever_they_failed_with():
    # Given tasks that wait, that fail as they end, and that had ended
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("the file is gone")

    tasks = [asyncio.create_task(work) for work in (asyncio.Event().wait(), fails(), asyncio.sleep(0))]
    await tasks[2]
    # When all are ended
    await end_all(tasks)
    # Then they are over, and nobody is told why; none at all is as good
    assert all(task.done() for task in tasks)
    await end_all([])


async def test_whoever_ends_several_may_be_cancelled_meanwhile():
    # Given a task that takes its time to end, and a caller that waits for it
    may_end, asked = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            asked.set()
            await may_end.wait()

    task = asyncio.create_task(slow())
    await asyncio.sleep(0)
    caller = asyncio.create_task(end_all([task]))
    await asked.wait()
    # When the caller is cancelled, Then it ends as cancelled, and the task goes on to its end
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not task.done()
    may_end.set()
    await asyncio.wait([task])
