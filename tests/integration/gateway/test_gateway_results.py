"""Following workloads: results, failures, time-outs, cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import tailrace
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.priority import DEFAULT_PRIORITY

EVERYTHING = Demand(cells={Cell("add", int(DEFAULT_PRIORITY)): 1000}, total=1000)


async def lease(stores: Any) -> Any:
    leased = await stores.queue.lease(EVERYTHING, 30.0, 5.0)
    assert leased is not None
    return leased


async def test_a_result_wakes_whoever_waits_for_it(stores: Any, client: tailrace.AsyncClient) -> None:
    # Given somebody who waits for a workload that runs
    handle = await client.submit("add", a=1)
    waiting = asyncio.create_task(handle.result(timeout=30))
    leased = await lease(stores)
    # When it succeeds with a value
    await stores.results.put({handle.id: b'{"sum": 2}'})
    await stores.queue.settle(leased.fence, leased.ids, [])
    # Then they get it
    assert await waiting == {"sum": 2}
    assert (await handle.status()).state == "success"
    assert await handle.result(timeout=0) == {"sum": 2}


async def test_many_wait_for_many(stores: Any, client: tailrace.AsyncClient) -> None:
    handles = await client.submit_many(tailrace.Call("add", a=number) for number in range(200))
    waiting = [asyncio.create_task(handle.result(timeout=30)) for handle in handles for _ in range(2)]
    while (leased := await stores.queue.lease(EVERYTHING, 30.0, 0.0)) is not None:
        await stores.results.put({id: b'"%s"' % id.encode() for id in leased.ids})
        await stores.queue.settle(leased.fence, leased.ids, [])
    assert await asyncio.gather(*waiting) == [handle.id for handle in handles for _ in range(2)]


async def test_a_failed_workload_raises_with_its_reason(stores: Any, client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1)
    leased = await lease(stores)
    failed = Settle(handle.id, leased.fence, State.FATAL_FAILURE, attempts=1, reason="no such address")
    await stores.queue.settle(leased.fence, [], [failed])
    with pytest.raises(tailrace.WorkloadFailed, match="no such address") as caught:
        await handle.result(timeout=30)
    assert (caught.value.outcome, caught.value.attempts, caught.value.id) == ("fatal_failure", 1, handle.id)


async def test_time_that_runs_out_says_so_and_the_workload_goes_on(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1)
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.05 seconds: it is new"):
        await handle.result(timeout="50ms")
    assert (await handle.status()).state == "new"


async def test_cancelling_what_has_not_started_ends_it(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1, delay="1h")
    waiting = asyncio.create_task(handle.result(timeout=30))
    assert await handle.cancel() == "cancelled"
    with pytest.raises(tailrace.WorkloadFailed, match="cancelled"):
        await waiting
    assert await handle.cancel() == "ended"
    assert await client.cancel_many(["f" * 16, handle.id]) == ["unknown", "ended"]


async def test_unknown_ids_are_said_to_be(client: tailrace.AsyncClient) -> None:
    for id in ("0123456789abcdef", "no id at all", ""):
        with pytest.raises(tailrace.InvalidRequest, match="no workload"):
            await client.status(id)
        with pytest.raises(tailrace.InvalidRequest, match="no workload"):
            await client.result(id, timeout=0)
    assert await client.status_many(["0123456789abcdef"]) == [None]


async def test_a_gateway_that_shuts_down_sends_waiters_away(gateway: Any, client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1)
    waiting = asyncio.create_task(handle.result(timeout=30))
    await client.status(handle.id)
    await gateway.drain(1)
    with pytest.raises(tailrace.Unavailable, match="shutting down"):
        await waiting


async def test_too_many_waiters_are_refused(stores: Any) -> None:
    gateway = stores.gateway(waiting_results=1)
    await gateway.start()
    async with tailrace.AsyncClient(gateway.address, timeout=0.1) as client:
        handle = await client.submit("add", a=1)
        waiting = [asyncio.create_task(client.result(handle.id, timeout=0.5)) for _ in range(2)]
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["Overloaded", "TimeoutError"]
    await gateway.stop()
