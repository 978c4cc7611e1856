"""Dead letters of items of jobs that returned well, and of whose results no item of the next job can be made."""

from __future__ import annotations

from typing import Any

from tailrace.model.dead_letter import JOB_ITEM, LetterFilter
from tailrace.model.errors import InvalidRequest
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.stores.jobs.jobs import Feeding

TREE = TreeSpec("job-1", "t", [JobSpec("a", "f"), JobSpec("b", "g", ("a",), each=True)])
FEEDINGS = [Feeding(Kind(name, 2)) for name in ("f", "g")]
QUEUE = {"kind": "queue"}
RESULTS = {b"1": b"[]", b"2": b"7", b"3": b"[]", b"4": b'"x"'}


async def grown(stores: Any, scheduler: Any) -> None:
    """A tree of which half of the items return no list."""
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS, result=RESULTS[flight.payloads[index]])
    scheduler.allow("f")
    await stores.jobs.create(TREE, FEEDINGS)
    await stores.jobs.add(TREE.id, "", "call", [JobItem(payload) for payload in RESULTS])


async def test_an_item_whose_result_makes_no_item_gets_a_letter_that_can_be_redriven(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given a job that takes lists apart, behind one of whose items half return none
    await grown(stores, scheduler)
    # When they have run
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().dead == 2)
    # Then these have letters, with what they were given and why
    letters = await stores.dead_letters.list(LetterFilter(), 10, 0, 1 << 20)
    assert sorted(each.payload for each in letters) == [b"2", b"4"]
    assert {(each.outcome, each.headers, each.attempts) for each in letters} == {("fatal", (JOB_ITEM,), 0)}
    assert all("it is no list" in each.reason and each.tries[-1].outcome == "fatal" for each in letters)
    found = await stores.jobs.show(TREE.id)
    assert (found.jobs[0].succeeded, found.jobs[0].failed, tailer.overview().settled) == (2, 2, 4)
    # And each may have another life in its tree
    answers = await stores.jobs.redrive([each.id for each in letters])
    assert all(each.workload for each in answers)


async def test_a_store_server_of_the_version_before_is_settled_with_as_before(
    stores: Any, scheduler: Any, start: Any, eventually: Any, monkeypatch: Any
) -> None:
    async def unknown(*_: Any) -> None:
        raise InvalidRequest("there is no queue.settle_results here")

    monkeypatch.setattr(type(stores.queue), "settle_results", unknown)
    await grown(stores, scheduler)
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().settled == 4)
    assert await stores.dead_letters.count() == 0
    found = await stores.jobs.show(TREE.id)
    assert (found.jobs[0].succeeded, found.jobs[0].failed) == (2, 2)
