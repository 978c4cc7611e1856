"""Jobs on PostgreSQL while several nodes add to a tree, run it, stop half-way, pause it and advance it at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Literal

import psycopg
import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.claim import Leased, Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Conflict, TailraceError
from tailrace.model.job import JobItem
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.postgres.advance import PostgresAdvance
from tailrace.stores.jobs.postgres.jobs import PostgresJobs
from tailrace.stores.jobs.postgres.statements import CHANGE, FOLD
from tailrace.stores.queue.intake import Callback
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.testing.conformance.jobs_engine import TOLD, feedings, job, tree_of

NODES, LEASE = 3, 1.0
SHAPE = (job("a"), job("b", "a"), job("c", "a", each=True), job("d", "b", "c", final=True), job("e", "d", gather=True))


class Node:
    """A process's queue with its jobs, which advance by themselves."""

    def __init__(self, url: str, schema: str, durability: Literal["durable", "relaxed"] = "relaxed") -> None:
        options = PostgresQueueOptions(url=url, schema=schema, connections=4)
        config = StoresConfig(durability=durability)
        self.queue = PostgresQueue(options, config, SYSTEM_CLOCK, wait=0.1)
        self.jobs = PostgresJobs(self.queue)

    async def __aenter__(self) -> Node:
        await self.queue.open()
        self._running = asyncio.create_task(self.jobs.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running
        await self.queue.close()


@pytest.fixture
async def nodes(postgres_server: str, postgres_schema: str) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Node(postgres_server, postgres_schema)) for _ in range(NODES)]


async def _work(node: Node, trees: list[str], chance: random.Random, fails: float) -> None:
    """Runs items that are due: some fail, some go back, and some claims are never heard of again."""
    cells = {Cell(f"{tree}:{name}", 2): 20 for tree in trees for name in "abcde"}
    while True:
        leased = await node.queue.lease(Demand(cells, frozenset(), 40), LEASE, 0.2)
        if leased is None or chance.random() < 0.05:
            continue
        ends = []
        plain = []
        for id, kind in zip(leased.ids, leased.kinds, strict=True):
            dice = chance.random()
            if dice < fails:
                ends.append(Settle(id, leased.fence, State.FATAL_FAILURE, reason="it fails"))
            elif dice < fails + 0.05:
                ends.append(Settle(id, leased.fence, State.NEW))
            elif dice < fails + 0.1 and not kind.function.endswith(":a"):
                plain.append(id)
            else:
                ends.append(Settle(id, leased.fence, State.SUCCESS, result=b"[1,2]"))
        await node.queue.settle(leased.fence, plain, ends)
        if chance.random() < 0.1:
            await node.queue.settle(leased.fence, plain, ends)  # the answer was lost


async def _add(node: Node, tree: str, name: str, chance: random.Random) -> int:
    """Adds items until the job is sealed. Returns how many."""
    added = 0
    for call in range(5000):
        await asyncio.sleep(0.03)
        items = [JobItem(b"x")] * chance.randint(1, 5)
        try:
            for _ in range(1 + (chance.random() < 0.2)):
                count = await node.jobs.add(tree, "", f"{name}-{call}", items)
        except Conflict:
            return added
        added += count
    raise AssertionError("it is never sealed")


@pytest.mark.parametrize("seed", range(3))
async def test_a_tree_that_many_work_on_at_once_ends_whole(nodes: list[Node], seed: int) -> None:
    # Given trees that several nodes add to and run, with claims that are lost and answers that are
    chance = random.Random(seed)
    trees = [f"t{n}" for n in range(3)]
    for id in trees:
        tree = tree_of(*SHAPE, id=id)
        made = await asyncio.gather(*(node.jobs.create(tree, feedings(tree)) for node in nodes))
        assert sum(made) == 1, "of those that make it at once, one is told that it is new"
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(_work(node, trees, chance, fails=0.02)) for node in nodes for _ in range(2)]
        adders = {
            id: [group.create_task(_add(node, id, f"n{n}", chance)) for n, node in enumerate(nodes)] for id in trees
        }
        # When they are paused, resumed and sealed meanwhile
        for id in trees:
            await asyncio.sleep(0.2)
            await chance.choice(nodes).jobs.change(id, "pause", "")
            await asyncio.sleep(0.1)
            await chance.choice(nodes).jobs.change(id, "resume", "")
            sealed = await asyncio.gather(*(node.jobs.seal(id, "") for node in nodes))
            assert sum(sealed) == 1
        added = {id: sum([await each for each in adders[id]]) for id in trees}
        # Then each ends, and no item is lost, doubled or left
        async with asyncio.timeout(60):
            for id in trees:
                while not (found := await nodes[0].jobs.show(id)) or not found.over:
                    await asyncio.sleep(0.02)
        for each in workers:
            each.cancel()
    for id in trees:
        found = await nodes[1].jobs.show(id)
        assert found is not None
        first, second, third, fourth, fifth = found.jobs
        assert first.succeeded + first.failed == added[id]
        assert second.succeeded + second.failed == first.succeeded
        assert third.succeeded + third.failed == 2 * first.succeeded
        assert fourth.succeeded + fourth.failed == second.succeeded + third.succeeded
        assert fifth.succeeded + fifth.failed == 1 or "bytes" in found.why
        assert await nodes[2].jobs.audit(id) == []


async def test_a_tree_that_is_cancelled_while_it_runs_ends_whole(nodes: list[Node]) -> None:
    chance = random.Random(7)
    tree = tree_of(*SHAPE, id="t0")
    await nodes[0].jobs.create(tree, feedings(tree))
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(_work(node, ["t0"], chance, fails=0.0)) for node in nodes]
        adders = [group.create_task(_add(node, "t0", f"n{n}", chance)) for n, node in enumerate(nodes)]
        await asyncio.sleep(0.5)
        words = await asyncio.gather(*(node.jobs.change("t0", "cancel", "enough") for node in nodes))
        assert sorted(words) == ["done", "over", "over"]
        added = sum([await each for each in adders])
        async with asyncio.timeout(30):
            while not (found := await nodes[0].jobs.show("t0")) or not found.over:
                await asyncio.sleep(0.02)
        for each in workers:
            each.cancel()
    assert (found.state, found.why) == ("cancelled", "enough")
    assert found.jobs[0].succeeded + found.jobs[0].failed == added
    assert await nodes[1].jobs.audit("t0") == []


async def test_nothing_of_a_cancelled_tree_is_handed_out_though_who_cancelled_it_died_then(
    postgres_server: str, postgres_schema: str
) -> None:
    # Given a tree that nobody advances by itself
    node = Node(postgres_server, postgres_schema)
    tree = tree_of(job("a"), id="t0")
    demand = Demand({Cell("t0:a", 2): 20}, frozenset(), 20)
    async with AsyncExitStack() as stack:
        await node.queue.open()
        stack.push_async_callback(node.queue.close)
        await node.jobs.create(tree, feedings(tree))
        await node.jobs.add("t0", "", "call", [JobItem(b"x")] * 20)
        # When a node cancels it, and dies before it has cancelled an item
        await node.jobs._ground.rows(CHANGE, ("t0", "cancel", "enough"), "a change of a job")
        # Then a claim finds none, and whoever advances it next ends it
        assert await node.queue.lease(demand, LEASE, 0.0) is None
        await node.jobs.advance()
        found = await node.jobs.show("t0")
    assert found is not None
    assert (found.state, found.failed) == ("cancelled", 20)


class _HeldFold:
    """The ground of an advance, whose look at jobs is committed when a test lets it go."""

    def __init__(self, node: Node, connection: psycopg.AsyncConnection[Any], schema: str) -> None:
        self._ground, self._connection, self._schema = node.jobs._ground, connection, schema
        self.looked, self.go = asyncio.Event(), asyncio.Event()

    async def rows(self, statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]:
        if statement != FOLD:
            return await self._ground.rows(statement, arguments, about)
        async with self._connection.transaction():
            cursor = await self._connection.execute(statement.replace("S.", f"{self._schema}.").encode(), arguments)
            found = await cursor.fetchall()
            self.looked.set()
            await self.go.wait()
        return found

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        return await self._ground.read(statement, arguments, about)


async def test_a_threshold_holds_for_failures_that_two_advances_count_at_once(
    postgres_server: str, postgres_schema: str
) -> None:
    # Given a tree that bears one failure, of which the last items of two jobs run
    node = Node(postgres_server, postgres_schema)
    tree = tree_of(job("a"), job("b", "a"), job("c", "a"), id="t0", policy="threshold", most_failed=1)
    async with AsyncExitStack() as stack:
        await node.queue.open()
        stack.push_async_callback(node.queue.close)
        await node.jobs.create(tree, feedings(tree))
        await node.jobs.add("t0", "", "call", [JobItem(b"x")])
        await node.jobs.seal("t0", "")
        root = await _claimed(node, "a")
        await node.queue.settle(root.fence, [], [Settle(root.ids[0], root.fence, State.SUCCESS, result=b"1")])
        await node.jobs.advance()
        last = [await _claimed(node, name) for name in "bc"]
        # When both fail, and who counts one of them does not see the other's count
        held = _HeldFold(
            node,
            await stack.enter_async_context(await psycopg.AsyncConnection.connect(postgres_server, autocommit=True)),
            postgres_schema,
        )
        ends = [Settle(each.ids[0], each.fence, State.FATAL_FAILURE, reason="it fails") for each in last]
        await node.queue.settle(last[0].fence, [], ends[:1])
        async with asyncio.TaskGroup() as group:
            group.create_task(PostgresAdvance(held).step())
            await held.looked.wait()
            await node.queue.settle(last[1].fence, [], ends[1:])
            await node.jobs.advance()
            held.go.set()
        # Then the tree has failed all the same, and says why
        await node.jobs.advance()
        found = await node.jobs.show("t0")
        assert found is not None
        assert (found.state, found.failed) == ("failed", 2)
        assert found.why == "2 of its items failed, and its policy is threshold of 1"
        assert await node.jobs.audit("t0") == []


async def _claimed(node: Node, name: str) -> Leased:
    leased = await node.queue.lease(Demand({Cell(f"t0:{name}", 2): 1}, frozenset(), 1), 30.0, 0.0)
    assert leased is not None
    return leased


async def test_a_server_that_is_killed_again_and_again_loses_nothing_of_a_tree(
    own_postgres: Callable[[], Any],
) -> None:
    # Given a tree that nodes run on a server that keeps what it answered
    server = own_postgres()
    chance = random.Random(11)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Node(server.address, "t", durability="durable")) for _ in range(2)]
        tree = tree_of(*SHAPE[:4], id="t0", on_done="f")
        await nodes[0].jobs.create(tree, feedings(tree), Callback(Kind(TOLD, 2)))
        for call in range(10):
            await nodes[0].jobs.add("t0", "", f"call-{call}", [JobItem(b"x")] * 20)
        await nodes[0].jobs.seal("t0", "")
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(_work_through(node, chance)) for node in nodes]
            # When it is killed while they do
            for _ in range(3):
                await asyncio.sleep(0.6)
                await asyncio.to_thread(server.program.kill)
                await asyncio.to_thread(server.program.start)
            # Then the tree ends, with every item once
            async with asyncio.timeout(90):
                while not (found := await _answered(lambda: nodes[0].jobs.show("t0"))).over:
                    await asyncio.sleep(0.1)
            for each in workers:
                each.cancel()
        counts = [each.succeeded + each.failed for each in found.jobs]
        assert (found.state, counts) == ("complete", [200, 200, 400, 600])
        assert await _answered(lambda: nodes[1].jobs.audit("t0")) == []
        demand = Demand({Cell(TOLD, 2): 10}, frozenset(), 10)
        told = None
        async with asyncio.timeout(30):
            while told is None:  # a claim whose answer was lost ends with its lease
                told = await _answered(lambda: nodes[1].queue.lease(demand, LEASE, 1.0))
        assert len(told.ids) == 1


async def _work_through(node: Node, chance: random.Random) -> None:
    """Works like `_work`, and waits for a server that is away."""
    while True:
        with suppress(TailraceError):
            await _work(node, ["t0"], chance, fails=0.0)
        await asyncio.sleep(0.05)


async def _answered(call: Callable[[], Awaitable[Any]]) -> Any:
    """Returns the answer of a call, repeated while the server is away."""
    while True:
        with suppress(TailraceError):
            return await call()
        await asyncio.sleep(0.05)
