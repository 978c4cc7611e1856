"""The front door while the queue's store is away: accepted workloads get there, once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scenes.spool_door import DEMAND, Opened, SpoolDoor

import tailrace
from tailrace.gateway.rules import spool as rule
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import NotConnected, Overloaded, Unavailable
from tailrace.model.metrics import samples
from tailrace.stores.spool.sqlite import SqliteSpool


@pytest.mark.parametrize("trouble", ["away", "cut", "hangs"])
async def test_what_is_accepted_while_the_store_fails_gets_there_once_and_in_order(
    opened: Opened, trouble: str
) -> None:
    # Given a store that does not answer, or whose answers are lost
    door = await opened()
    door.queue.trouble = trouble
    # When work is submitted, one by one and many at once
    handles = [await door.client.submit("add", a=number) for number in range(3)]
    handles += await door.client.submit_many(tailrace.Call("add", a=number) for number in range(3, 1500))
    # Then all of it is accepted, and says where it is
    assert all(handle.spooled and not handle.duplicate for handle in handles)
    assert len({handle.id for handle in handles}) == 1500
    if trouble == "away":
        assert (await handles[7].status()).state == "spooled"
    # And when the store is back, each gets there once, in the order in which it was submitted
    door.queue.trouble = "none"
    await door.drained()
    assert door.queue.stored == [b'{"a":%d}' % number for number in range(1500)]
    found = await door.client.status_many([handle.id for handle in handles[:1000]])
    assert [each.state for each in found if each is not None] == ["new"] * 1000
    assert sum((await door.queue.counts()).values()) == 1500
    assert not (await door.client.submit("add", a=1)).spooled


async def test_what_is_to_tell_its_end_waits_for_the_store(opened: Opened) -> None:
    # Given a store that is away
    door = await opened()
    door.queue.trouble = "away"
    # When a workload with a callback is submitted, then it is refused with why, since no spool keeps that
    with pytest.raises(Unavailable, match="workloads with on_done are not spooled: try again"):
        await door.client.submit("add", a=1, on_done="send_email")
    assert (await door.client.submit("add", a=2)).spooled
    # And once the store is back it is taken
    door.queue.trouble = "none"
    await door.drained()
    await door.client.submit("add", a=1, on_done="add")
    assert door.queue.stored == [b'{"a":2}', b'{"a":1}']


async def test_a_store_that_is_known_to_be_away_is_not_asked_by_each_submission(opened: Opened) -> None:
    door = await opened(store_patience=0.05)
    door.queue.trouble = "hangs"
    await door.client.submit("add", a=0)
    asked = door.queue.asked
    await door.client.submit_many([tailrace.Call("add", a=1)] * 10)
    assert [each.spooled for each in await asyncio.gather(*(door.client.submit("add", a=1) for _ in range(50)))] == [
        True
    ] * 50
    assert door.queue.asked - asked < 50


async def test_the_warning_has_its_reason_also_where_the_store_only_does_not_answer(opened: Opened, caplog) -> None:
    door = await opened(store_patience=0.05)
    door.queue.trouble = "hangs"
    await door.client.submit("add", a=0)
    [told] = [each.getMessage() for each in caplog.records if "submissions are spooled" in each.getMessage()]
    assert told.endswith(": it did not answer in time")


async def test_what_cannot_be_is_refused_without_the_store(opened: Opened) -> None:
    door = await opened()
    door.queue.trouble = "away"
    with pytest.raises(tailrace.UnknownFunction, match="did you mean 'send_email'"):
        await door.client.submit("send_emial", to="ann")
    with pytest.raises(tailrace.InvalidRequest, match="at most 30d"):
        await door.client.submit("add", a=1, delay="31d")


async def test_a_full_spool_refuses_and_says_when_to_come_again(opened: Opened) -> None:
    door = await opened(spool_items=3)
    door.queue.trouble = "away"
    for number in range(3):
        await door.client.submit("add", a=number)
    async with tailrace.AsyncClient(door.client.gateway, timeout=0.5) as hasty:
        with pytest.raises(Overloaded, match="spooled 3 workloads") as caught:
            await hasty.submit("add", a=3)
    assert caught.value.retry_after == rule.FULL_WAIT
    door.queue.trouble = "none"
    await door.drained()
    assert len(door.queue.stored) == 3


async def test_a_batch_that_would_not_be_known_again_is_refused_rather_than_stored_twice(opened: Opened) -> None:
    # Given a store whose answers are lost, and a client that wants no tokens kept
    door = await opened()
    door.queue.trouble = "cut"
    with pytest.raises(tailrace.Unavailable):
        await door.client.submit_many([tailrace.Call("add", a=1)] * 5, resend=False)
    assert (await door.operator.overview()).spool.items == 0
    # But when the store was not asked, it is spooled
    await door.client.submit("add", a=2)
    assert [each.spooled for each in await door.client.submit_many([tailrace.Call("add", a=3)] * 2, resend=False)] == [
        True,
        True,
    ]
    door.queue.trouble = "none"
    await door.drained()
    assert sorted(door.queue.stored) == [b'{"a":1}'] * 5 + [b'{"a":2}'] + [b'{"a":3}'] * 2


async def test_a_dedupe_key_counts_within_the_spool_and_again_in_the_store(opened: Opened) -> None:
    # Given a key that the store knows, and one that it does not
    door = await opened()
    known = await door.client.submit("add", a=0, dedupe_key="known")
    door.queue.trouble = "away"
    # When both are submitted twice while it is away
    first = await door.client.submit("add", a=1, dedupe_key="new")
    second = await door.client.submit("add", a=2, dedupe_key="new")
    again = await door.client.submit("add", a=3, dedupe_key="known")
    # Then the spool knows its own, and not yet what the store knows
    assert (first.duplicate, second.duplicate, second.id, again.duplicate) == (False, True, first.id, False)
    # And in the store the first one counts: the later ids lead there
    door.queue.trouble = "none"
    await door.drained()
    assert (await again.status()).id == known.id
    assert sorted(await door.run_everything()) == [b'{"a":0}', b'{"a":1}']


async def test_nothing_with_a_key_overtakes_what_is_spooled(opened: Opened) -> None:
    # Given work with a key in the spool
    door = await opened()
    door.queue.trouble = "away"
    await door.client.submit("add", a=0, key="k")
    # When the store answers again and more of that key comes at once
    door.queue.trouble = "none"
    for number in range(1, 20):
        await door.client.submit("add", a=number, key="k")
    await door.drained()
    assert await door.run_everything() == [b'{"a":%d}' % number for number in range(20)]


async def test_a_submission_that_is_given_up_as_it_is_spooled_is_not_overtaken(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given one with a key that is durable in the spool, of which nobody heard yet
    door = await opened()
    door.queue.trouble = "away"
    add, durable, goes_on = SqliteSpool.add, asyncio.Event(), asyncio.Event()

    async def held_up(spool: SqliteSpool, items: Any, *rest: Any) -> Any:
        answers = await add(spool, items, *rest)
        if not durable.is_set():
            durable.set()
            await goes_on.wait()
        return answers

    monkeypatch.setattr(SqliteSpool, "add", held_up)
    given_up = asyncio.create_task(door.client.submit("add", a=0, key="k"))
    await durable.wait()
    # When its client leaves, the store is back, and another one of the key comes
    given_up.cancel()
    await asyncio.wait([given_up])
    door.queue.trouble = "none"
    await door.client.submit("add", a=1, key="k")
    goes_on.set()
    # Then both get there, in their order
    async with asyncio.timeout(20):
        while len(door.queue.stored) < 2:
            await asyncio.sleep(0.005)
    assert await door.run_everything() == [b'{"a":0}', b'{"a":1}']


async def test_a_spooled_workload_can_be_waited_for_and_cancelled(opened: Opened, stores: Any) -> None:
    door = await opened()
    door.queue.trouble = "away"
    waited, ended, late = [await door.client.submit("add", a=number) for number in range(3)]
    # When one is cancelled in the spool
    assert await ended.cancel() == "requested"
    assert await door.client.cancel("spool-0000000000000001") == "unknown"
    # And somebody waits for another while the store comes back
    result = asyncio.create_task(waited.result(timeout=20))
    door.queue.trouble = "none"
    await door.drained()
    assert await late.cancel() == "cancelled"
    leased = await stores.queue.lease(DEMAND, 30.0, 0)
    assert leased is not None
    assert leased.payloads == [b'{"a":0}']
    await stores.results.put({leased.ids[0]: b"7"})
    await stores.queue.settle(leased.fence, leased.ids, [])
    # Then its result comes, and nobody ran what was cancelled
    assert await result == 7
    assert (await ended.status()).state == "cancelled"
    assert await door.run_everything() == []


async def test_a_spooled_workload_can_be_looked_at_and_moved(opened: Opened, stores: Any) -> None:
    # Given workloads that wait in the spool, one of them until later
    door = await opened()
    door.queue.trouble = "away"
    late = await door.client.submit("add", a=1, delay="1h", key="k", expires_after="10m")
    soon = await door.client.submit("add", a=2)
    seen = await door.client.peek(late.id, max_bytes=4)
    assert (seen.payload, seen.size, seen.key, seen.status.state) == (b'{"a"', 7, "k", "spooled")
    # When both are moved there
    assert (await door.client.reschedule(late.id, delay="3h")).outcome == "expires"
    moved = await door.client.reschedule(late.id, now=True, priority="interactive")
    assert (moved.outcome, moved.id) == ("changed", late.id)
    assert moved.status is not None and (moved.status.state, moved.status.kind.priority) == ("spooled", 0)
    assert (await door.client.reschedule(soon.id, delay="1h")).changed
    # Then they get to the store so, and are moved on there by the same ids
    door.queue.trouble = "none"
    await door.drained()
    [leased] = [await stores.queue.lease(Demand({Cell("add", 0): 9}, frozenset(), 9), 30.0, 0)]
    assert leased is not None and leased.payloads == [b'{"a":1}']
    assert (await door.client.reschedule(late.id, now=True)).outcome == "out"
    assert await stores.queue.lease(DEMAND, 30.0, 0) is None
    assert (await door.client.reschedule(soon.id, now=True)).outcome == "changed"
    assert await door.run_everything() == [b'{"a":2}']


async def test_what_the_store_has_though_its_answer_was_lost_is_moved_there_too(opened: Opened) -> None:
    # Given one that the store took and did not answer
    door = await opened()
    door.queue.trouble = "cut"
    handle = await door.client.submit("add", a=1, delay="1h")
    async with asyncio.timeout(20):
        while not door.queue.stored:
            await asyncio.sleep(0.005)
    assert handle.spooled
    # When it is moved while it is still in the spool
    assert (await door.client.reschedule(handle.id, now=True, priority="user_visible")).changed
    door.queue.trouble = "none"
    await door.drained()
    # Then the store has it once, as it was asked
    status = await handle.status()
    assert (status.kind.priority, status.state) == (1, "new")
    assert status.due_at <= status.created_at + 60


async def test_what_the_store_never_takes_is_kept_out_of_the_others_way(opened: Opened) -> None:
    door = await opened()
    door.queue.trouble, door.queue.refused = "away", {b'{"a":1}'}
    handles = [await door.client.submit("add", a=number) for number in range(3)]
    door.queue.trouble = "none"
    await door.drained()
    assert door.queue.stored == [b'{"a":0}', b'{"a":2}']
    status = await handles[1].status()
    assert (status.state, status.reason) == (
        "fatal_failure",
        "the queue refused it: such a payload is not taken here",
    )
    assert (await door.operator.overview()).spool.refused == 1


async def test_operators_see_the_spool_while_the_store_is_away(opened: Opened) -> None:
    door = await opened()
    assert (await door.operator.overview()).spool.state == "clear"
    door.queue.trouble = "away"
    await door.client.submit("add", a=1)
    seen = (await door.operator.overview()).spool
    assert (seen.state, seen.items, seen.size, seen.taken) == ("filling", 1, 7, 1)
    named = {sample.metric.prometheus: sample.value for sample in samples(await door.operator.overview())}
    assert named["tailrace_spool_items"] == 1


async def test_a_gateway_that_starts_while_its_store_is_away_takes_what_it_knew(
    opened: Opened, stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a gateway with something in its spool, that stopped
    first = await opened()
    first.queue.trouble = "away"
    handle = await first.client.submit("add", a=1)
    await first.close()
    # When it starts again while the whole store is away
    away = True
    snapshot, wait = stores.control.snapshot, stores.control.wait

    async def maybe(call: Callable[..., Any], *arguments: Any) -> Any:
        if away:
            raise NotConnected("the store does not answer")
        return await call(*arguments)

    monkeypatch.setattr(stores.control, "snapshot", lambda: maybe(snapshot))
    monkeypatch.setattr(stores.control, "wait", lambda *arguments: maybe(wait, *arguments))
    second = SpoolDoor(stores, first._folder)
    second.queue.trouble = "away"
    await second.open()
    # Then it takes functions that it knew, and tells watchers nothing before it has read the gates
    assert (await second.client.submit("add", a=2)).spooled
    watching = asyncio.create_task(second.operator.limits())
    done, _ = await asyncio.wait({watching}, timeout=0.05)
    assert not done
    # And brings everything when the store is back
    away, second.queue.trouble = False, "none"
    await watching
    await second.drained()
    assert second.queue.stored == [b'{"a":1}', b'{"a":2}']
    assert (await second.client.status(handle.id)).state == "new"
    await second.close()
