"""A retry of a job, as clients ask for it: a request that was not answered is repeated as the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.model.errors import Unavailable
from tailrace.model.job import TreeStatus
from tailrace.sdk import job_calls
from tailrace.sdk.jobs import Job


class _Client:
    """A client whose steps need no answers of a gateway."""

    _talk: Any = None

    def _run(self, steps: Any) -> Any:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        raise AssertionError("nothing is asked for here")


def test_another_try_that_was_not_answered_is_asked_for_with_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a gateway that does not answer at first, and then that another id's is open
    asked: list[str] = []

    def retry(talk: Any, tree: str, id: str, why: str) -> Iterator[Any]:
        asked.append(id)
        if len(asked) == 1:
            raise Unavailable("away")
        return TreeStatus("begun" if len(asked) == 2 else id, "t", "", "running", "continue", "", 0.0)
        yield

    monkeypatch.setattr(job_calls, "retry", retry)
    job = Job(_Client(), "job-1", None, "")
    # When it is asked for again, then with the same id, and the answer's is that of the job
    with pytest.raises(Unavailable):
        job.retry()
    assert job.retry().id == "begun"
    assert asked[0] == asked[1]
    # And what is asked for after an answer is another one
    assert job.retry().id == asked[2] != asked[1]


def test_another_try_says_which_jobs_gather_what_is_tried_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def retry(talk: Any, tree: str, id: str, why: str) -> Iterator[Any]:
        return TreeStatus(id, "t", "", "running", "continue", "", 0.0, anew=["sum"])
        yield

    monkeypatch.setattr(job_calls, "retry", retry)
    job = Job(_Client(), "job-1", None, "")
    assert (job.gathers_anew, job.retry().gathers_anew) == ((), ("sum",))
