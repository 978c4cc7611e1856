"""The signal that work is handed on: whoever got it has ended, or takes long."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

from tailrace.foundation.handed_on import HandedOn
from tailrace.stores.sqlite.answers import Write, resolve


async def test_it_is_done_when_all_tasks_have_ended_and_at_once_where_there_is_none() -> None:
    gate, other = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(each.wait()) for each in (gate, other)]
    await asyncio.wait_for(HandedOn([None], 60.0).future, 5.0)
    future = HandedOn([*tasks, None], 60.0).future
    gate.set()
    await tasks[0]
    assert not future.done()
    other.set()
    await asyncio.wait_for(future, 5.0)


async def test_a_task_that_goes_on_to_something_else_is_not_waited_for() -> None:
    forever = asyncio.create_task(asyncio.Event().wait())
    await asyncio.wait_for(HandedOn([forever], 0.001).future, 5.0)
    assert not forever.done() and forever.cancel()


async def test_a_submitter_hears_of_its_commit_behind_who_leased_in_it_and_pushed_that() -> None:
    # Given a lease and a submission that one commit answers
    loop = asyncio.get_running_loop()
    order: list[str] = []

    def write(deadline: float | None) -> Write:
        def job(connection: sqlite3.Connection) -> None:
            """Is not run here."""

        return Write(job, loop.create_future(), deadline, None)

    lease, submission = write(9e9), write(None)

    async def leases() -> None:
        order.append(await lease.future)
        await asyncio.sleep(0)  # on its way to the frame
        order.append("pushed")

    async def submits() -> None:
        order.append(await submission.future)

    lease.asker, submitter = asyncio.create_task(leases()), asyncio.create_task(submits())
    answers: list[Any] = [(submission, "submitted", None), (lease, "leased", None)]
    # When they are answered
    resolve(answers)
    await submitter
    # Then the submitter hears of it behind the push
    assert order == ["leased", "pushed", "submitted"]
