"""Laws for the nodes of one queue on any kind of server, beside the laws that each of them obeys alone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from servers.queue_nodes import PostgresNodes, QueueNodes, RedisNodes

from tailrace.model.claim import State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import InvalidRequest, Overloaded
from tailrace.model.one_item import BEHIND, CHANGED
from tailrace.model.workload import Kind
from tailrace.stores.queue.items import NOW
from tailrace.stores.queue.queue import NewItem, Queue, Reschedule

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


@pytest.fixture(params=["postgres", "redis"])
async def nodes(request: pytest.FixtureRequest) -> AsyncIterator[QueueNodes]:
    value = request.getfixturevalue
    made: QueueNodes
    if request.param == "postgres":
        made = PostgresNodes(value("postgres_server"), value("postgres_schema"))
    else:
        made = RedisNodes(value("redis_server"))
    yield made
    await made.close()


async def test_nodes_that_share_a_queue_never_have_one_item_twice(nodes: QueueNodes) -> None:
    await share(nodes)


async def test_nodes_with_a_pooler_between_never_have_one_item_twice(
    postgres_server: str, postgres_schema: str, postgres_pooler: str
) -> None:
    nodes = PostgresNodes(postgres_server, postgres_schema)
    await share(nodes, url=postgres_pooler)
    await nodes.close()


async def share(nodes: QueueNodes, **options: str) -> None:
    # Given three nodes and many items, some of them in the order of their keys
    three = [await nodes.queue(**options) for _ in range(3)]
    await asyncio.gather(
        *(node.submit([NewItem(MAIL, b"", key=f"k{n % 7}" if n % 3 else "") for n in range(100)]) for node in three)
    )
    seen: list[str] = []

    async def work(node: Queue) -> None:
        while leased := await node.lease(Demand({Cell("mail", 2): 10}, frozenset(), 10), LEASE, 0.05):
            seen.extend(leased.ids)
            assert (await node.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)).lost == []
            assert await node.settle(leased.fence, leased.ids, []) == []

    # When they work at once
    while len(seen) < 300:
        await asyncio.gather(*map(work, three))
    # Then each item was handed out once, and every node counts the same
    assert len(seen) == len(set(seen)) == 300
    for node in three:
        assert (await node.counts())["success"] == 300
    tally = await three[0].tally()
    assert (tally.taken, tally.forgotten, tally.states["success"]) == (300, 0, 300)


async def test_what_another_node_submits_ends_a_wait_within_a_poll(nodes: QueueNodes) -> None:
    one, other = await nodes.queue(), await nodes.queue()
    waiting = asyncio.create_task(one.lease(ANY, LEASE, 30))
    await other.submit([NewItem(MAIL, b"here")])
    nodes.clock.advance(1.0)
    leased = await asyncio.wait_for(waiting, 20)
    assert leased is not None
    assert leased.payloads == [b"here"]


async def test_what_another_node_makes_due_ends_a_wait_within_a_poll_whatever_its_priority_is_now(
    nodes: QueueNodes,
) -> None:
    # Given an item that is due later, and a node that waits, also for a priority that nobody had yet
    one, other = await nodes.queue(), await nodes.queue()
    [item] = await other.submit([NewItem(MAIL, b"here", due=nodes.clock.wall() + 500)])
    wanted = Demand({Cell("mail", 0): 10, Cell("mail", 2): 10}, frozenset(), 10)
    assert await one.lease(wanted, LEASE, 0) is None
    waiting = asyncio.create_task(one.lease(wanted, LEASE, 30))
    # When the other node moves it
    assert await other.reschedule([Reschedule(item.id, NOW, 0)]) == [CHANGED]
    nodes.clock.advance(1.0)
    # Then the first one has it, as it is now
    leased = await asyncio.wait_for(waiting, 20)
    assert leased is not None
    assert (leased.payloads, leased.kinds) == ([b"here"], [MAIL._replace(priority=0)])


async def test_what_one_node_puts_off_no_other_hands_out_before(nodes: QueueNodes) -> None:
    # Given three nodes that know of many items that are due, and two that move some of them meanwhile
    three = [await nodes.queue() for _ in range(3)]
    ids = [each.id for each in await three[0].submit([NewItem(MAIL, b"", key=f"k{n % 50}") for n in range(150)])]
    later, moved, seen = nodes.clock.wall() + 500, dict[str, str](), list[str]()

    async def move(node: Queue, some: list[str]) -> None:
        for id in some:
            [moved[id]] = await node.reschedule([Reschedule(id, later, 2)])

    async def work(node: Queue) -> None:
        while leased := await node.lease(Demand({Cell("mail", 2): 4}, frozenset(), 4), LEASE, 0.05):
            assert not [id for id in leased.ids if moved.get(id) in (CHANGED, BEHIND)]
            seen.extend(leased.ids)
            assert await node.settle(leased.fence, leased.ids, []) == []

    # When all of that happens at once
    await asyncio.gather(*map(work, three), move(three[0], ids[::3]), move(three[1], ids[1::5]))
    # Then nothing ran twice or early, and what was put off comes when it is due
    assert len(seen) == len(set(seen))
    assert not {*seen} & {id for id, answer in moved.items() if answer in (CHANGED, BEHIND)}
    nodes.clock.advance(501)
    while len(seen) < 150:
        moved.clear()
        await asyncio.gather(*map(work, three))
    assert sorted(seen) == sorted(ids)


async def test_a_hint_of_another_node_ends_a_wait_at_once(nodes: QueueNodes) -> None:
    # Given nodes that poll so seldom that only a hint can end the wait, and that hear each other
    one, other = await nodes.queue(notify=True, poll=60), await nodes.queue(notify=True, poll=60)
    for node in (one, other):
        await asyncio.wait_for(node._hints.listening.wait(), 20)
    # When one waits and the other submits, of a function that nobody had heard of
    waiting = asyncio.create_task(one.lease(ANY, LEASE, 60))
    async with asyncio.timeout(20):
        while not one._poller.waiting:
            await asyncio.sleep(0.001)
    await other.submit([NewItem(MAIL, b"here")])
    # Then it has it
    leased = await asyncio.wait_for(waiting, 20)
    assert leased is not None
    assert leased.payloads == [b"here"]


async def test_pollers_are_counted_until_they_leave_or_are_silent(nodes: QueueNodes) -> None:
    # Given two nodes, of which one polls
    one, other = await nodes.queue(), await nodes.queue()
    assert await one.lease(ANY, LEASE, 0.01) is None
    roll = nodes.roll(other)
    async with asyncio.timeout(20):
        while await roll.count("b", here=False) < 1:
            await asyncio.sleep(0.001)
    # When another one says that it is there, and falls silent
    assert await roll.count("b", here=True) == 2
    await nodes.silence("b")
    # Then it is counted no more, and nor is who was closed
    assert await roll.count("c", here=True) == 2
    await one.close()
    assert await roll.count("c", here=False) == 1


async def test_what_is_claimed_for_somebody_who_left_goes_back(nodes: QueueNodes) -> None:
    queue = await nodes.queue()
    [(id, _)] = await queue.submit([NewItem(MAIL, b"")])
    leaving = asyncio.create_task(queue.lease(ANY, LEASE, 5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    leased = await queue.lease(ANY, LEASE, 10)
    assert leased is not None
    assert (leased.ids, leased.attempts) == ([id], [1])


async def test_a_full_queue_refuses_and_says_when_to_come_back(nodes: QueueNodes) -> None:
    queue = await nodes.queue(max_waiting=3)
    await queue.submit([NewItem(MAIL, b"")] * 3)
    with pytest.raises(Overloaded, match="at most 3") as told:
        await queue.submit([NewItem(MAIL, b"")])
    assert told.value.retry_after > 0


async def test_keys_that_cannot_be_kept_are_refused_before_anything_is_sent(nodes: QueueNodes) -> None:
    # Given keys that are too long, no text, or nothing that this server keeps
    queue = await nodes.queue()
    wrong = ("x" * 2001, "\ud800", "é" * 1001, *nodes.no_keys)
    # When each of them comes with an item that is fine, then both are refused, in words
    for field, key in itertools.product(("key", "dedupe_key"), wrong):
        with pytest.raises(InvalidRequest, match=f"its {field}"):
            await queue.submit([NewItem(MAIL, b"fine"), NewItem(MAIL, b"", **{field: key})])
    # And the longest, and those with signs that mean something to a server, come through as they are
    longest = ["é" * 1000, '"quoted\\", {and, so} on']
    await queue.submit([NewItem(MAIL, b"", key=key, dedupe_key=key) for key in longest])
    leased = await queue.lease(ANY, LEASE, 0)
    assert leased is not None
    assert {extra.key for extra in leased.extras.values()} == {*longest}
    again = await queue.submit([NewItem(MAIL, b"", dedupe_key=key) for key in longest])
    assert [each.duplicate for each in again] == [True, True]
