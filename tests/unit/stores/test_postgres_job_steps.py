"""Steps of jobs on PostgreSQL: one that fails takes no other job's turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.jobs.postgres import statements as call
from tailrace.stores.jobs.postgres.advance import FoldedJob, PostgresAdvance


def folded(job: int, **said: Any) -> FoldedJob:
    """A sealed job with nothing left to do."""
    usual = FoldedJob(
        job=job,
        tree=job,
        name=f"job-{job}",
        prefix=b"",
        suffix=b"",
        most=1000,
        gather=False,
        each=False,
        sealed=True,
        pending=0,
        looked=-1,
        complete=False,
        folds=1,
        parents=0,
        open_parents=0,
        policy="continue",
        most_failed=0,
        tree_failed=0,
        ending="",
        paused=False,
        upto=0,
    )
    return usual._replace(**said)


class Server:
    """A schema in which these jobs are due, and no gathering ends in its time."""

    def __init__(self, *due: FoldedJob) -> None:
        self.due = list(due)
        self.gathered = 0
        self.completed: list[str] = []
        self.away = False

    async def rows(self, statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]:
        if self.away:
            raise NotConnected("db: the server does not answer")
        if statement is call.FOLD:
            return [tuple(each) for each in self.due]
        if statement is call.GATHER:
            self.gathered += 1
            raise NotConnected("db, a gathering: no answer within 10 s")
        assert statement is call.DECIDE
        self.completed.append(str(arguments[1]))
        self.due = [each for each in self.due if each.gather]
        return [(1,)]

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        if self.away:
            raise NotConnected("db: the server does not answer")
        assert statement is call.NOW
        return [(1,)]


GATHERS = folded(1, gather=True, sealed=False, parents=1)


async def test_a_job_whose_step_fails_takes_no_other_ones_turn(caplog: pytest.LogCaptureFixture) -> None:
    # Given a job whose gathering takes too long, before one that is to be completed
    server = Server(GATHERS, folded(2))
    ahead = PostgresAdvance(server)
    # When steps are taken
    first, second = await ahead.step(), await ahead.step()
    # Then the other one is completed, the first one is named, and has no other step for now
    assert (server.completed, server.gathered, ahead.failed) == (["{2}"], 1, {1})
    assert (first.left, second.left) == (1, 0)
    assert "job 'job-1' (number 1 of the tree number 1): a step failed" in caplog.text
    # And one that rests since then is not begun
    assert (await PostgresAdvance(server, rest={1}).step()).left == 0
    assert server.gathered == 1


async def test_steps_end_when_the_server_is_away() -> None:
    server = Server(GATHERS, folded(2))
    ahead = PostgresAdvance(server)
    found = server.rows

    async def lost(statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]:
        server.away = statement is call.GATHER
        return await found(statement, arguments, about)

    server.rows = lost  # type: ignore[method-assign]
    with pytest.raises(NotConnected):
        await ahead.step()
    assert (server.completed, ahead.failed) == ([], set())
