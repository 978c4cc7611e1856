"""Dead letters of items of jobs: redriven, they run again in their own trees."""

from __future__ import annotations

from typing import Any

from tailrace.model.claim import Leased, Settle, State
from tailrace.model.dead_letter import JOB_ITEM, DeadLetter, LetterFilter
from tailrace.model.demand import Cell, Demand
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.workload import Kind
from tailrace.stores.jobs.jobs import Feeding
from tailrace.wire.gateway import GatewayClient

TREE = TreeSpec("job-1", "sums", [JobSpec("add", "add"), JobSpec("send", "send_email", ("add",))])
KINDS = [Kind("add", 1), Kind("send_email", 1)]
DEMAND = Demand({Cell(kind.function, 1): 10 for kind in KINDS}, frozenset(), 10)


async def failed_item(stores: Any) -> str:
    """Makes an open tree whose only item failed for good. Returns its workload, of which there is a letter."""
    await stores.jobs.create(TREE, [Feeding(kind, b'{"x":', b"}") for kind in KINDS])
    await stores.jobs.add(TREE.id, "", "call", [JobItem(b'{"x":1}')])
    leased: Leased = await stores.queue.lease(DEMAND, 30.0, 0.0)
    [id] = leased.ids
    letter = DeadLetter(
        id, "queue", KINDS[0], b'{"x":1}', "fatal", "bad", 1, 0, first_seen=1.0, died_at=2.0, headers=(JOB_ITEM,)
    )
    await stores.dead_letters.add([letter])
    await stores.queue.settle(leased.fence, [], [Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad")])
    return id


async def settled(stores: Any) -> list[str]:
    """Runs the tree's items well until none is due. Returns the workloads that ran."""
    ran: list[str] = []
    while (leased := await stores.queue.lease(DEMAND, 30.0, 0.0)) is not None:
        ends = [Settle(id, leased.fence, State.SUCCESS, result=b"1") for id in leased.ids]
        assert await stores.queue.settle(leased.fence, [], ends) == []
        ran += leased.ids
    return ran


async def test_a_redriven_letter_of_an_item_runs_again_in_its_tree(stores: Any, operator: GatewayClient) -> None:
    # Given an open job of which an item failed
    id = await failed_item(stores)
    # When its letter is redriven
    reply = await operator.redrive(LetterFilter(ids=(id,)))
    # Then it is an item of its tree again, under another id, and its success feeds what comes after
    [row] = reply.letters
    assert row.workload not in ("", id)
    assert await stores.dead_letters.count() == 0
    await stores.jobs.seal(TREE.id, "")
    ran = await settled(stores)
    assert (len(ran), ran[0]) == (2, row.workload)
    found = await stores.jobs.show(TREE.id)
    assert (found.state, found.succeeded, found.failed) == ("complete", 2, 0)
    assert await stores.jobs.audit(TREE.id) == []


async def test_a_letter_of_a_job_that_is_complete_stays_and_says_what_to_do(
    stores: Any, operator: GatewayClient
) -> None:
    id = await failed_item(stores)
    await stores.jobs.seal(TREE.id, "")
    [row] = (await operator.redrive(LetterFilter(ids=(id,)))).letters
    assert (row.workload, "`tailrace job retry job-1`" in row.refused) == ("", True)
    assert await stores.dead_letters.count() == 1
    assert await stores.dead_letters.list(LetterFilter(moving=True), 10) == []


async def test_a_letter_of_a_job_that_was_deleted_stays_and_its_item_does_not_run_again(
    stores: Any, operator: GatewayClient
) -> None:
    # Given a job whose failed item was tried again, well, by another try, and that was deleted then
    id = await failed_item(stores)
    await stores.jobs.seal(TREE.id, "")
    await stores.jobs.retry(TREE.id, "again", "")
    assert len(await settled(stores)) == 2
    await stores.jobs.change(TREE.id, "delete", "")
    while await stores.jobs.sweep():
        pass
    # When all letters of the function are redriven, then that one stays, and nothing runs outside of the job
    [row] = (await operator.redrive(LetterFilter(function="add"))).letters
    assert (row.id, row.workload, "forgotten or deleted" in row.refused) == (id, "", True)
    assert await settled(stores) == []
    assert await stores.dead_letters.count() == 1


async def test_a_redrive_that_a_gateway_died_in_is_finished_by_the_next_one_and_runs_once(stores: Any) -> None:
    # Given a gateway that died when the item had its next workload, and its letter was still there
    id = await failed_item(stores)
    [letter] = await stores.dead_letters.list(LetterFilter(ids=(id,)), 10)
    await stores.dead_letters.mark([letter.number], True)
    [answer] = await stores.jobs.redrive([id])
    # When the next one starts
    running = stores.gateway()
    await running.start()
    try:
        async with GatewayClient(running.address) as operator:
            # Then a redrive of everything finds nothing more, and the item runs once
            assert (await operator.redrive(LetterFilter())).letters == []
            ran = await settled(stores)
            assert (len(ran), ran[0]) == (2, answer.workload)
    finally:
        await running.stop()
    found = await stores.jobs.show(TREE.id)
    assert [(each.succeeded, each.failed) for each in found.jobs] == [(1, 0), (1, 0)]


async def test_an_item_that_failed_without_a_letter_is_redriven_by_its_id(stores: Any, operator: GatewayClient) -> None:
    # Given an open job of which nothing could be made of an item's result, so that it failed and has no letter
    id = await failed_item(stores)
    [letter] = await stores.dead_letters.list(LetterFilter(ids=(id,)), 10)
    await stores.dead_letters.remove([letter.number])
    # When it is named beside more than its id, or all letters are redriven, then nothing is done
    assert (await operator.redrive(LetterFilter(ids=(id,), function="add"))).letters == []
    assert (await operator.redrive(LetterFilter())).letters == []
    # When it is named, then it is an item of its tree again; what is no item's id is nothing
    [row] = (await operator.redrive(LetterFilter(ids=(id, "orders/0/17")))).letters
    assert (row.id, row.function, row.refused) == (id, "add", "")
    assert row.workload not in ("", id)
    assert (await settled(stores))[0] == row.workload
