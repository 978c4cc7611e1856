"""Laws of gathers whose results fit no payload: the gathering item names jobs and counts, and its run reads the results
by pages, for as long as it may be tried again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ...model.claim import Leased, Settle, State
from ...model.errors import Conflict
from ...model.gathered import BEGIN, GatheredJob, gathered_results
from ...model.job import JobHolder, TreeSpec
from .jobs_engine import LEASE, MOST, JobsEngine, fill, job, make, shown, take, tree_of, work

#: Bytes of a result in these laws: ten of them fit no payload.
SIZE = MOST // 10
WEEK = 7 * 86_400.0
JOBS = (job("a"), job("b", "a"), job("sum", "b", "a", gather=True), job("c", "sum"))


def large(number: bytes) -> bytes:
    """A result of SIZE bytes that is recognised by its number."""
    return b'"' + number.rjust(SIZE - 2, b".") + b'"'


def numbers(results: Sequence[bytes]) -> list[int]:
    """The numbers in results of the function `large`."""
    return [int(json.loads(each).strip(".")) for each in results]


async def grown(engine: JobsEngine, tree: TreeSpec, *numbers: int) -> list[tuple[str, bytes]]:
    """Makes a tree and runs its first two jobs, the ones before the gather. Returns the runs in order."""
    await make(engine, tree)
    await fill(engine, tree, *(b"%d" % n for n in numbers))
    await engine.jobs.seal(tree.id, "")
    return await work(engine, tree_of(*tree.jobs[:2], id=tree.id), once)


def once(name: str, payload: bytes) -> bytes | None:
    """Results of the jobs before the gather; None, a failure, for an item 7."""
    return None if payload == b"7" else large(payload) if name == "a" else payload.strip(b"<>")


async def held(engine: JobsEngine, tree: TreeSpec) -> tuple[Leased, JobHolder]:
    """Claims the item of the gather. Returns the claim and the holder of the item."""
    leased = await take(engine, tree, ["sum"])
    assert leased is not None
    [id] = leased.ids
    return leased, JobHolder(id, leased.fence)


async def read(engine: JobsEngine, holder: JobHolder, limit: int = 4) -> list[bytes]:
    """Reads all results that succeeded, page by page, as a run does."""
    found, after = [], ""
    while True:
        page = await engine.jobs.gathered(holder, after, limit, 1 << 20)
        assert len(page.results) <= limit
        found += [each.result for each in page.results if each.succeeded]
        after = page.after
        if not after:
            return found


class JobsGathersLaws:
    """Laws of large gathers. An engine's test derives from them and gives a fixture `engine`."""

    async def test_a_gather_whose_results_fit_no_payload_names_jobs_and_counts(self, engine: JobsEngine) -> None:
        # Given a tree whose results do not fit one payload
        tree = tree_of(*JOBS)
        await grown(engine, tree, *range(20))
        # When what they were is gathered
        leased, holder = await held(engine, tree)
        # Then the payload says of which jobs they are, and how many
        assert leased.payloads[0].startswith(BEGIN)
        found = gathered_results(leased.payloads[0])
        assert found == (tree.id, (GatheredJob("a", 19, 1), GatheredJob("b", 19, 0)), b"<", b">")
        # And its run reads all of them, in the order of jobs and items, as often as it likes
        kept = [n for n in range(20) if n != 7]
        for limit in (1000, 4):
            assert numbers(await read(engine, holder, limit)) == [*kept, *kept]
        small = await engine.jobs.gathered(holder, "", 1000, 1)
        assert len(small.results) == 1
        # And what it returns goes on
        ends = [Settle(holder.workload, holder.fence, State.SUCCESS, result=b"38")]
        await engine.queue.settle(leased.fence, [], ends)
        assert await work(engine, tree, lambda name, payload: payload) == [("c", b"<38>")]
        assert (await shown(engine, tree)).state == "complete"

    async def test_a_list_that_just_fits_is_given_whole(self, engine: JobsEngine) -> None:
        room = MOST - len(b"<[]>")
        for length, whole in ((room, True), (room + 1, False)):
            tree = await make(engine, tree_of(job("a"), job("sum", "a", gather=True), id=f"job-{length}"))
            await fill(engine, tree, b"1", b"2")
            await engine.jobs.seal(tree.id, "")
            parts = {b"1": b"1" * 400, b"2": b"2" * (length - 401)}
            await work(engine, tree_of(job("a"), id=tree.id), lambda name, payload, parts=parts: parts[payload])  # type: ignore[misc]
            leased, holder = await held(engine, tree)
            listed = b"<[" + parts[b"1"] + b"," + parts[b"2"] + b"]>"
            assert (leased.payloads[0] == listed) is whole
            assert leased.payloads[0].startswith(BEGIN) is not whole
            assert await read(engine, holder) == [*parts.values()], "what was given whole can be read, too"

    async def test_only_a_run_that_has_the_item_of_a_gather_reads(self, engine: JobsEngine) -> None:
        tree = tree_of(*JOBS)
        await make(engine, tree)
        await fill(engine, tree, *(b"%d" % n for n in range(20)))
        await engine.jobs.seal(tree.id, "")
        root = await take(engine, tree, ["a"])
        assert root is not None
        ends = [Settle(id, root.fence, State.SUCCESS, result=large(b"1")) for id in root.ids]
        strangers = [JobHolder(root.ids[0], root.fence), JobHolder("x", 1)]
        for stranger in strangers:
            with pytest.raises(Conflict, match="no item of a job that gathers"):
                await engine.jobs.gathered(stranger, "", 10, 1 << 20)
        await engine.queue.settle(root.fence, [], ends)
        await work(engine, tree_of(*JOBS[:2], id=tree.id), once)
        _, holder = await held(engine, tree)
        assert len(await read(engine, holder)) == 40
        # And not when its lease is over, and another run has it
        await engine.pass_time(LEASE + 1)
        await take(engine, tree, ["c"])
        _, again = await held(engine, tree)
        for stranger in (holder, again._replace(fence=1)):
            with pytest.raises(Conflict, match="another run may have it"):
                await engine.jobs.gathered(stranger, "", 10, 1 << 20)
        assert len(await read(engine, again)) == 40

    async def test_what_failed_reads_the_same_results_in_its_next_life(self, engine: JobsEngine) -> None:
        # Given a gather that fails beside another job, so that its own is open
        tree = tree_of(*JOBS)
        await grown(engine, tree, *range(20))
        leased, holder = await held(engine, tree)
        given = leased.payloads[0]
        first = await read(engine, holder)
        back = Settle(holder.workload, holder.fence, State.RETRIABLE_FAILURE, attempts=1)
        await engine.queue.settle(leased.fence, [], [back])
        # When it is handed out again, then it has the same
        await engine.reopen()
        leased, holder = await held(engine, tree)
        assert (leased.payloads[0], await read(engine, holder)) == (given, first)

    async def test_another_try_of_a_gather_reads_the_former_tree_which_is_kept_for_it(self, engine: JobsEngine) -> None:
        # Given a tree whose gather failed, though all before it succeeded
        tree = tree_of(*JOBS)
        await grown(engine, tree, *(n for n in range(20) if n != 7))
        leased, holder = await held(engine, tree)
        expected = await read(engine, holder)
        lost = Settle(holder.workload, holder.fence, State.FATAL_FAILURE, reason="a bug")
        await engine.queue.settle(leased.fence, [], [lost])
        assert (await shown(engine, tree)).state == "complete"
        # When it is tried again, fails, and is tried again in the tree that was made of that
        for former, id in ((tree.id, "second"), ("second", "third")):
            made = await engine.jobs.retry(former, id, "ann")
            assert (made.id, made.items) == (id, 1)
            again = tree_of(*JOBS, id=id)
            leased, holder = await held(engine, tree)
            assert gathered_results(leased.payloads[0]).tree == tree.id
            if id == "second":
                lost = Settle(holder.workload, holder.fence, State.FATAL_FAILURE, reason="a bug")
                await engine.queue.settle(leased.fence, [], [lost])
                assert (await shown(engine, again)).state == "complete"
        # Then the first tree is kept for it, deleted or not, and however long that takes
        await engine.jobs.change(tree.id, "delete", "")
        for _ in range(20):
            await engine.sweep()
        await engine.reopen()
        assert await read(engine, holder) == expected
        # And it is forgotten with the last of them
        await engine.queue.settle(leased.fence, [], [Settle(holder.workload, leased.fence, State.SUCCESS, result=b"1")])
        await work(engine, tree, lambda name, payload: payload)
        await engine.pass_time(WEEK + 60)
        while await engine.sweep():
            pass
        for id in (tree.id, "second", "third"):
            assert await engine.jobs.show(id) is None
        await make(engine, tree)  # nothing of the former one is there any more
