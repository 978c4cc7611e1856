"""Workloads that are cancelled while they are spooled: the store may have them already, and nobody runs them."""

from __future__ import annotations

from typing import Any

import pytest
from scenes.spool_door import DEMAND, Opened, SpoolDoor

from tailrace.model.claim import State


@pytest.mark.parametrize("trouble", ["cut", "away"])
async def test_what_is_cancelled_in_the_spool_runs_nowhere_though_the_store_may_have_it(
    opened: Opened, trouble: str
) -> None:
    # Given one that is spooled, and that the store took and did not answer, or does not have
    door = await opened()
    door.queue.trouble = trouble
    handle = await door.client.submit("add", a=1)
    assert handle.spooled
    # When it is cancelled before the store answers again
    assert await handle.cancel() == "requested"
    assert await handle.cancel() == "requested"
    waits = await door.client.peek(handle.id)
    assert (waits.status.state, waits.status.reason) == ("spooled", "it is cancelled once the store answers")
    assert (await door.client.reschedule(handle.id, now=True)).outcome == "ended"
    door.queue.trouble = "none"
    await door.drained()
    # Then nobody runs it
    assert await door.run_everything() == []
    assert (await handle.status()).state == "cancelled"
    assert await handle.cancel() == "ended"


async def test_what_is_cancelled_in_the_spool_and_runs_already_has_its_worker_told(opened: Opened, stores: Any) -> None:
    # Given one that the store took without an answer, and that is out at a tailer
    door = await opened()
    door.queue.trouble = "cut"
    handle = await door.client.submit("add", a=1)
    leased = await stores.queue.lease(DEMAND, 30.0, 0)
    assert leased is not None
    # When it is cancelled in the spool, and the store answers again
    assert await handle.cancel() == "requested"
    door.queue.trouble = "none"
    await door.drained()
    # Then whoever has it is asked to end it
    renewed = await stores.queue.renew(leased.ids, leased.fence, 30.0, State.PROCESSING)
    assert list(renewed.cancel) == list(leased.ids)


async def test_what_is_cancelled_in_the_spool_is_so_after_a_restart_and_where_the_queue_refuses_it(
    opened: Opened, stores: Any
) -> None:
    # Given one that the store would never take, and one that it has though its answer was lost
    first = await opened()
    first.queue.trouble = "cut"
    there = await first.client.submit("add", a=0)
    first.queue.trouble = "away"
    bad = await first.client.submit("add", a=1)
    # When both are cancelled, and the gateway ends before the store answers again
    assert await first.client.cancel_many([there.id, bad.id]) == ["requested"] * 2
    await first.close()
    second = SpoolDoor(stores, first._folder)
    second.queue.refused = {b'{"a":1}'}
    try:
        await second.open()
        await second.drained()
        # Then neither runs, and none is kept as one that the store refused
        assert await second.run_everything() == []
        found = await second.client.status_many([there.id, bad.id])
        assert [each.state for each in found if each is not None] == ["cancelled"] * 2
        assert (await second.operator.overview()).spool.refused == 0
    finally:
        await second.close()
