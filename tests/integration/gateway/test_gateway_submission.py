"""Submission over the wire: accepted items are in the queue, refused ones leave nothing."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

import tailrace
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import AlreadyInUse, ConfigError, Overloaded
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.gateway_messages import new_workload
from tailrace.wire.v1 import gateway_pb2 as pb


@tailrace.function
async def add(a: int, b: int = 1) -> int:
    return a + b


async def stored(stores: Any) -> int:
    return sum((await stores.queue.counts()).values())


async def test_an_accepted_workload_is_in_the_queue(stores: Any, client: tailrace.AsyncClient) -> None:
    handle = await client.submit(add, 2, b=3, tenant="acme", delay="1h")
    [status] = await stores.queue.status([handle.id])
    assert (status.kind.function, status.kind.tenant, status.state.label) == ("add", "acme", "new")
    assert 3590 < status.due - time.time() <= 3600
    seen = await handle.status()
    assert (seen.id, seen.state, seen.function, seen.ended) == (handle.id, "new", "add", False)


async def test_a_delay_is_never_cut_short(stores: Any, client: tailrace.AsyncClient) -> None:
    before = SYSTEM_CLOCK.wall()
    handle = await client.submit("add", a=1, delay=5)
    [status] = await stores.queue.status([handle.id])
    assert status.due >= before + 5


async def test_a_function_nobody_registered_is_refused_with_the_nearest_name(
    stores: Any, client: tailrace.AsyncClient
) -> None:
    with pytest.raises(tailrace.UnknownFunction, match="did you mean 'send_email'"):
        await client.submit("send_emial", to="ann")
    assert await stored(stores) == 0


async def test_a_batch_with_one_bad_workload_is_refused_whole(stores: Any, client: tailrace.AsyncClient) -> None:
    calls = [tailrace.Call("add", a=number) for number in range(5)]
    calls[3] = tailrace.Call("add", a=0, delay="31d")
    with pytest.raises(tailrace.InvalidRequest, match=r"workload 3 of 5: the delay is 31d.*none was accepted"):
        await client.submit_many(calls)
    assert await stored(stores) == 0


async def test_a_payload_beyond_the_bound_is_refused(stores: Any, client: tailrace.AsyncClient) -> None:
    with pytest.raises(tailrace.InvalidPayload, match="at most 1048576"):
        await client.submit("add", a="x" * (1 << 20))
    assert await stored(stores) == 0


async def test_more_than_a_thousand_in_one_request_are_refused(stores: Any, operator: GatewayClient) -> None:
    request = pb.SubmitRequest(workloads=[new_workload("add", b"")] * 1001)
    with pytest.raises(tailrace.InvalidRequest, match="1001 workloads"):
        await operator.call("Submit", request)
    assert await stored(stores) == 0


async def test_many_are_stored_in_order(stores: Any, client: tailrace.AsyncClient) -> None:
    handles = await client.submit_many(tailrace.Call("add", a=number) for number in range(2500))
    assert len({handle.id for handle in handles}) == 2500
    assert await stored(stores) == 2500


async def test_a_known_dedupe_key_gives_the_first_workload(stores: Any, client: tailrace.AsyncClient) -> None:
    first = await client.submit("add", a=1, dedupe_key="once")
    second = await client.submit("add", a=1, dedupe_key="once")
    assert (first.id, first.duplicate, second.duplicate) == (second.id, False, True)
    assert await stored(stores) == 1


async def test_the_same_submission_heard_twice_is_stored_once(stores: Any, operator: GatewayClient) -> None:
    # Given a submission whose answer was lost
    request = pb.SubmitRequest(workloads=[pb.NewWorkload(function="add", submission_id="0123456789abcdef")])
    first = await operator.call("Submit", request)
    # When its client sends it again
    second = await operator.call("Submit", request)
    # Then the answer is the same, and it is nobody's duplicate
    assert list(first.ids) == list(second.ids)
    assert list(second.duplicates) == []
    assert await stored(stores) == 1


async def test_an_overloaded_gateway_refuses_and_says_when_to_come_back(stores: Any) -> None:
    # Given a gateway whose queue is slow, storing as much as it may
    slow = SlowQueue(stores.queue)
    gateway = replace(stores, queue=slow).gateway(submitting_items=10)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator:
            request = pb.SubmitRequest(workloads=[new_workload("add", b"")] * 10)
            first = asyncio.create_task(operator.call("Submit", request))
            await slow.entered.wait()
            # When another comes, then it is refused at once
            with pytest.raises(Overloaded, match="storing 10 workloads") as caught:
                await operator.call("Submit", request)
            assert caught.value.retry_after > 0
            # And a patient client gets in once the others are stored
            async with tailrace.AsyncClient(gateway.address) as client:
                late = asyncio.create_task(client.submit("add", a=1))
                slow.let_go.set()
                assert (await late).id
            assert len((await first).ids) == 10
    finally:
        await gateway.stop()


class SlowQueue:
    """A queue that says when a submission has come, and stores it when it is let go."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def submit(self, items: Any) -> Any:
        self.entered.set()
        await self.let_go.wait()
        return await self._queue.submit(items)


async def test_a_full_disk_is_said_at_once(stores: Any) -> None:
    class Full:
        held = stores.queue.held

        async def submit(self, items: Any) -> Any:
            raise tailrace.StoreFull("queue store: the disk is full. Free some space; nothing of this write was kept")

    gateway = replace(stores, queue=Full()).gateway()
    await gateway.start()
    async with tailrace.AsyncClient(gateway.address, timeout=60) as other:
        with pytest.raises(tailrace.StoreFull, match="Free some space"):
            await other.submit("add", a=1)
    await gateway.stop()


async def test_a_payload_is_opaque_to_the_gateway(stores: Any, operator: GatewayClient) -> None:
    reply = await operator.call("Submit", pb.SubmitRequest(workloads=[new_workload("add", b"\xff not json")]))
    assert len(reply.ids) == 1


async def test_draining_answers_what_is_inside_and_refuses_the_rest(stores: Any) -> None:
    slow = SlowQueue(stores.queue)
    gateway = replace(stores, queue=slow).gateway()
    await gateway.start()
    async with GatewayClient(gateway.address) as operator:
        # Given a submission that is being stored
        request = pb.SubmitRequest(workloads=[new_workload("add", b"")])
        inside = asyncio.create_task(operator.call("Submit", request))
        await slow.entered.wait()
        # When the gateway drains
        draining = asyncio.create_task(gateway.drain(10))
        await asyncio.sleep(0)
        with pytest.raises(tailrace.Unavailable, match="shutting down"):
            await operator.call("Submit", request)
        assert not draining.done()
        slow.let_go.set()
        # Then it is answered first
        assert len((await inside).ids) == 1
        await draining
        await gateway.stop()
        await gateway.stop()
    assert await stored(stores) == 1


async def test_a_gateway_that_is_not_there_is_named_with_what_to_do() -> None:
    async with tailrace.AsyncClient("127.0.0.1:9", timeout=0.2) as client:
        with pytest.raises(tailrace.Unavailable, match=r"127\.0\.0\.1:9.*tailrace up.*TAILRACE_GATEWAY"):
            await client.submit("add", a=1)


async def test_a_taken_port_and_a_public_one_are_refused(stores: Any, gateway: Any) -> None:
    other = stores.gateway(int(gateway.address.rpartition(":")[2]))
    with pytest.raises(AlreadyInUse, match=gateway.address):
        await other.start()
    await other.stop()
    public = stores.gateway(listen="0.0.0.0:0")
    with pytest.raises(ConfigError, match="only loopback"):
        await public.start()
    await public.stop()
