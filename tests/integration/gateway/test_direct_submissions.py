"""Submissions of one machine without gRPC: the answers are the same, and a client that cannot go that way uses gRPC."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest
from servers.fickle_queue import FickleQueue

import tailrace
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import Overloaded
from tailrace.wire.carriers import serve_streams
from tailrace.wire.stream import Stream
from tailrace.wire.submissions import SUBMISSIONS, Submissions, new_name

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")


def is_direct(client: tailrace.AsyncClient) -> bool:
    return client._near[0].open


async def submitted_until_direct(client: tailrace.AsyncClient) -> list[str]:
    """Submits until a call goes the direct way. Returns the ids of all that it submitted."""
    ids = [(await client.submit("add", a=0)).id]
    while not is_direct(client):
        ids.append((await client.submit("add", a=0)).id)
    return ids


async def test_a_client_of_this_machine_is_told_and_its_calls_are_answered_the_same(
    stores: Any, gateway: GatewayServer, client: tailrace.AsyncClient
) -> None:
    # Given a client that was told, and a gateway that takes no more calls by gRPC
    ids = await submitted_until_direct(client)
    await gateway._servers.pop(0).stop(None)
    # When it submits alone, many at once, in chunks, and what is refused
    ids += [handle.id for handle in await asyncio.gather(*(client.submit("add", a=n) for n in range(300)))]
    ids += [handle.id for handle in await client.submit_many([tailrace.Call("add", a=n) for n in range(2500)])]
    with pytest.raises(tailrace.UnknownFunction, match="did you mean 'send_email'"):
        await client.submit("send_emial", to="ann")
    first = await client.submit("add", a=1, dedupe_key="once")
    again = await client.submit("add", a=1, dedupe_key="once")
    # Then each is there once, and errors are themselves
    assert is_direct(client)
    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
    assert len({*ids, first.id}) == len(ids) + 1 == sum((await stores.queue.counts()).values())


async def test_an_overloaded_gateway_says_for_how_long_and_one_that_fails_says_so(
    stores: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a client of a gateway whose queue takes nothing more
    queue = FickleQueue(stores.queue)
    config = GatewayConfig(listen="127.0.0.1:0")
    gateway = GatewayServer(config, replace(stores, queue=queue))
    await gateway.start()
    async with tailrace.AsyncClient(gateway.address, timeout=0.2) as client:
        await submitted_until_direct(client)
        queue.trouble = "full"
        with pytest.raises(Overloaded, match="takes at most 9") as full:
            await client.submit("add", a=1)
        assert full.value.retry_after == 5.0
        # And one that fails at a submission
        queue.trouble = "none"
        gateway._desks._submitter._rule = None
        with pytest.raises(tailrace.TailraceError, match="the gateway failed: AttributeError"):
            await client.submit("add", a=1)
        assert is_direct(client)
    await gateway.stop()
    caplog.clear()


async def test_a_gateway_that_dies_and_comes_back_is_submitted_to_again(gateway_process: Any) -> None:
    # Given a client that submits to a gateway directly
    async with tailrace.AsyncClient(gateway_process.address, timeout=20) as client:
        ids = await submitted_until_direct(client)
        # When the gateway is killed, and started again while the client submits
        gateway_process.kill()
        waiting = asyncio.create_task(client.submit("add", a=1))
        await asyncio.to_thread(gateway_process.start)
        ids.append((await waiting).id)
        # Then it goes on by gRPC, with the next gateway process
        ids.append((await client.submit("add", a=1)).id)
        assert len({*ids}) == len(ids)
        assert all(status is not None for status in await client.status_many(ids))


@pytest.mark.parametrize("many", [False, True])
async def test_a_stream_that_goes_away_before_a_call_took_its_first_step_is_no_error(
    gateway: GatewayServer, client: tailrace.AsyncClient, many: bool
) -> None:
    # Given a client that submits directly
    await submitted_until_direct(client)
    near, took = client._near[0], []
    submit = near.submit

    def seen(*given: Any) -> Any:
        made = submit(*given)
        took.append(near._stream)
        # When its stream ends after the call was made, and before that began
        near._task.cancel()  # type: ignore[union-attr]
        return late(made)

    async def late(made: Any) -> Any:
        while near.open:
            await asyncio.sleep(0)
        return await made

    near.submit = seen  # type: ignore[method-assign]
    # Then it goes on by gRPC
    if many:
        handles = await client.submit_many([tailrace.Call("add", a=n) for n in range(3)])
    else:
        handles = [await client.submit("add", a=1)]
    assert len(took) == 1 and all(handles) and not near.open


async def test_a_stream_that_ends_before_its_first_answer_is_never_used() -> None:
    # Given somebody at the name who takes the stream and ends it well, without a word
    async def silent(stream: Stream) -> None:
        return

    name = new_name()
    server, _ = await serve_streams(name, {SUBMISSIONS: silent})
    near = Submissions("127.0.0.1:1")
    opened = []
    # When a client is told of it
    near.told(name)
    task = near._task
    while task is not None and not task.done():
        opened.append(near.open)
        await asyncio.sleep(0)
    # Then nothing goes that way, and it is not asked again at once
    assert not any(opened) and not near.open and not near.asks()
    await server.stop(None)


async def test_a_client_that_is_closed_under_calls_says_so(stores: Any) -> None:
    # Given calls that wait: for a result, and directly for a store
    queue = FickleQueue(stores.queue)
    gateway = GatewayServer(GatewayConfig(listen="127.0.0.1:0"), replace(stores, queue=queue))
    await gateway.start()
    client = tailrace.AsyncClient(gateway.address, timeout=20)
    [id, *_] = await submitted_until_direct(client)
    before, queue.trouble = queue.asked, "hangs"
    calls = [client.result(id), client.submit("add", a=1), client.submit_many([tailrace.Call("add", a=1)])]
    waiting = [asyncio.create_task(call) for call in calls]
    async with asyncio.timeout(10):
        while queue.asked < before + 2:
            await asyncio.sleep(0)
        # When the client is closed
        await client.close()
        # Then each says that, and none is cancelled or left waiting
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [tailrace.InvalidRequest] * 3, ends
    assert all("is closed" in str(end) for end in ends)
    await gateway.stop()


async def test_a_blocking_client_that_is_closed_under_calls_says_so(stores: Any) -> None:
    # Given calls of two threads that wait: for a result, and for a store
    queue = FickleQueue(stores.queue)
    gateway = GatewayServer(GatewayConfig(listen="127.0.0.1:0"), replace(stores, queue=queue))
    await gateway.start()
    client = tailrace.Client(gateway.address, timeout=20)
    handle = await asyncio.to_thread(client.submit, "add", a=0)
    queue.trouble = "hangs"
    waiting = [
        asyncio.create_task(asyncio.to_thread(client.result, handle.id)),
        asyncio.create_task(asyncio.to_thread(client.submit_many, [tailrace.Call("add", a=1)])),
    ]
    async with asyncio.timeout(10):
        while queue.asked < 2:
            await asyncio.sleep(0)
        # When the client is closed, then each says that
        await asyncio.to_thread(client.close)
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [tailrace.InvalidRequest] * 2, ends
    assert all("is closed" in str(end) for end in ends)
    await gateway.stop()


async def test_who_cannot_reach_the_name_or_is_told_none_goes_on_with_grpc(stores: Any) -> None:
    for direct in (True, False):
        gateway = stores.gateway(direct=direct)
        await gateway.start()
        async with tailrace.AsyncClient(gateway.address, timeout=20) as client:
            if direct:  # beyond a tunnel nobody has that name
                await client.submit("add", a=0)
                await client._near[0].close()
                client._near[0]._again = 0.0
                client._near[0].told(new_name())
                while client._near[0]._task is not None:
                    await asyncio.sleep(0)
                assert not client._near[0].asks()  # not at once again
            ids = [(await client.submit("add", a=0)).id for _ in range(5)]
            assert not is_direct(client)
            assert len({*ids}) == 5
        await gateway.stop()


async def test_a_client_elsewhere_and_a_blocking_one_never_ask(gateway: GatewayServer) -> None:
    assert not Submissions("gateway.example:8786").asks()
    # Given a blocking client of this machine, then it does not ask either
    asked: list[bool] = []
    submit = gateway._desks._submitter.submit

    async def seen(request: Any) -> Any:
        asked.append(request.asks_direct)
        return await submit(request)

    gateway._desks._submitter.submit = seen  # type: ignore[method-assign]
    with tailrace.Client(gateway.address) as blocking:
        await asyncio.to_thread(blocking.submit, "add", a=1)
    assert asked == [False]
