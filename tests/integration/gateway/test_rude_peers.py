"""Neighbours that connect and do not behave: they cost a gateway no more than its bounds, and are seen in its
alerts."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from scenes.rude_peers import connected, ended, greeting, http2, message, pushed, pushed_until

import tailrace
from tailrace.foundation.metrics_server import CONNECTIONS, MetricsServer
from tailrace.foundation.run_dir import Card
from tailrace.gateway.server import GatewayServer
from tailrace.model.exposition import prometheus_text
from tailrace.model.metrics import Sample, samples
from tailrace.wire.bounds import Endings, PeerBounds
from tailrace.wire.channel import dial, serve
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.gateway_messages import new_workload
from tailrace.wire.health import Health
from tailrace.wire.shared_secret import ENTRY, CallerCheck
from tailrace.wire.submissions import AT_ONCE, UNREAD
from tailrace.wire.v1 import gateway_pb2 as pb

SUBMISSIONS = "/tailrace.v1.Gateway/Submissions"
MIB = 1 << 20

Bounded = Callable[..., Any]


@pytest.fixture
async def bounded(stores: Any) -> AsyncIterator[Bounded]:
    """Starts a gateway with these bounds."""
    running: list[GatewayServer] = []

    async def started(submitting_items: int = 20_000, **bounds: Any) -> GatewayServer:
        gateway: GatewayServer = stores.gateway(peers=PeerBounds(**bounds), submitting_items=submitting_items)
        await gateway.start()
        running.append(gateway)
        return gateway

    yield started
    for each in running:
        await each.stop()


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def alerts_of(gateway: GatewayServer) -> dict[str, str]:
    async with GatewayClient(gateway.address) as operator:
        return {each.code: each.what for each in (await operator.overview()).alerts}


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
@pytest.mark.parametrize("stalled", [60.0, 0.2])
async def test_a_client_that_submits_and_never_reads_is_asked_for_no_more_and_ended(
    bounded: Bounded, stalled: float
) -> None:
    # Given a gateway, and a client of its stream that never reads: each answer has a thousand ids. (What is refused for
    # want of room has a short one.)
    gateway = await bounded(stalled=stalled, submitting_items=10_000_000)
    known = new_workload("add", b'{"a":0}', dedupe_key="one")
    call = pb.NumberedSubmit(number=1, request=pb.SubmitRequest(workloads=[known] * 1000)).SerializeToString()
    peer = connected(gateway._desks.direct)
    try:
        # When it goes on submitting
        taken = await pushed(peer, greeting(SUBMISSIONS) + message(call), 1) and await pushed(peer, message(call), 2500)
        # Then the gateway stops taking before it holds more than a few megabytes: what is being stored, what was
        # answered and not read, and what the sockets hold of either. In time it ends it, and says so
        assert taken < AT_ONCE + UNREAD + 200
        if stalled < 1:
            await asyncio.wait_for(ended(peer), 20)
            assert "were not read" in (await alerts_of(gateway))["peers"]
    finally:
        peer.close()
    # And everybody else is answered
    async with tailrace.AsyncClient(gateway.address) as client:
        assert (await client.submit("add", a=1)).id


async def test_a_peer_that_never_reads_over_grpc_holds_no_more_than_the_bound() -> None:
    # Given a server whose answers have a mebibyte each
    live = 0

    async def answer(request: bytes, context: Any) -> bytes:
        nonlocal live
        live += 1
        context.add_done_callback(lambda _: leave())
        return bytes(MIB)

    def leave() -> None:
        nonlocal live
        live -= 1

    method = grpc.unary_unary_rpc_method_handler(answer)
    handlers = grpc.method_handlers_generic_handler("test.Big", {"Get": method})
    endings = Endings()
    server, address = await serve(
        "127.0.0.1:0",
        [lambda server: server.add_generic_rpc_handlers([handlers])],
        PeerBounds(unsent=8 * MIB, stalled=0.3),
        endings,
    )
    # When a peer asks three hundred times and never reads
    peer = connected(address)
    try:
        for each in islice(http2("/test.Big/Get"), 301):
            assert await pushed(peer, each, 1)
        # Then what waits for it stays within the bound, and is let go of when it has read nothing for a while
        async with asyncio.timeout(20):
            while not endings.counts["unread_replies"] or live:
                # Nine at a time are ended; their handlers are told of it a while later
                assert live <= 9 * (endings.counts["unread_replies"] + 1)
                await asyncio.sleep(0)
        # And whoever reads is answered, however much that is
        async with dial(address) as channel:
            get: Any = channel.unary_unary("/test.Big/Get")
            assert [len(await get(b"")) for _ in range(20)] == [MIB] * 20
    finally:
        peer.close()
        await server.stop(None)


async def test_two_thousand_idle_connections_leave_room_for_files_and_others(bounded: Bounded) -> None:
    # Given two thousand connections that say nothing
    gateway = await bounded(connections=50, greeting=0.5)
    before = open_files()
    peers = []
    for _ in range(2000):
        peers.append(connected(gateway.address))
        await asyncio.sleep(0)
    try:
        # Then the gateway has no more of them open than its bound, and soon none
        async with asyncio.timeout(20):
            while open_files() - before - len(peers) > 50:
                await asyncio.sleep(0)
            async with tailrace.AsyncClient(gateway.address, timeout=15) as client:
                assert (await client.submit("add", a=1)).id
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
async def test_a_frame_that_is_begun_and_not_ended_ends_its_connection(bounded: Bounded) -> None:
    # Given a peer that announces sixteen mebibytes and sends one byte; and one that says nothing at all
    gateway = await bounded(frame=0.2, greeting=0.2)
    begun, silent = connected(gateway._desks.direct), connected(gateway._desks.direct)
    try:
        assert await pushed(begun, greeting(SUBMISSIONS) + message(bytes(16 * MIB))[:6], 1)
        # Then both are ended, and it is said
        async with asyncio.timeout(20):
            await asyncio.gather(ended(begun), ended(silent))
    finally:
        begun.close()
        silent.close()
    assert gateway._desks.endings.counts == {"frame": 1, "greeting": 1}
    assert (await alerts_of(gateway))["peers"]
    async with GatewayClient(gateway.address) as operator:
        text = prometheus_text(samples(await operator.overview()))
    assert 'tailrace_gateway_ended_peers_total{bound="frame"} 1' in text


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
async def test_connections_beyond_the_bound_are_refused_and_counted(bounded: Bounded) -> None:
    gateway = await bounded(connections=3)
    peers = [connected(gateway._desks.direct) for _ in range(5)]
    try:
        async with asyncio.timeout(20):
            await asyncio.gather(*(ended(peer) for peer in peers[3:]))
        assert gateway._desks.endings.counts == {"connection": 2}
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.timeout(240)
async def test_calls_that_strangers_make_and_never_read_leave_room_for_others() -> None:
    # Given a server that asks for a secret, and a peer without one that asks for its health or more, and never reads
    entry = CallerCheck(Card(Path("/run/of/nobody"), 0, "a" * 64))
    given, endings, health = ENTRY.set(entry), Endings(), Health("test.Big")
    try:
        bounds = PeerBounds(stalled=0.2, unsent=MIB)
        server, address = await serve("127.0.0.1:0", [health.register], bounds, endings)
    finally:
        ENTRY.reset(given)
    try:
        for path in ("/grpc.health.v1.Health/Check", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
            endings.counts.clear()
            async with asyncio.timeout(100):
                # When it asks so often that what it is answered fills its connection, of which the kernel keeps 4 MB
                # (gRPC itself may end a connection of too many calls before it answered them: then by another one)
                while not endings.counts["unread_replies"]:
                    peer = connected(address)
                    try:
                        await pushed_until(peer, http2(path), lambda: bool(endings.counts["unread_replies"]))
                    finally:
                        peer.close()
                # Then its calls are ended, and said; and others are answered (0.2 s is short for a busy machine)
                answered = False
                async with grpc.aio.insecure_channel(address) as channel:
                    while not answered:
                        with contextlib.suppress(grpc.aio.AioRpcError):
                            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
                            answered = bool(answer.status)
    finally:
        await server.stop(None)


async def test_who_scrapes_and_says_nothing_is_bounded_and_ended() -> None:
    # Given a listener for scrapes, and more connections than it takes that say nothing
    async def nothing() -> list[Sample]:
        return []

    metrics = MetricsServer("127.0.0.1:0", nothing)
    await metrics.start()
    peers = [connected(metrics.address) for _ in range(CONNECTIONS + 5)]
    try:
        # Then those beyond the bound are ended at once
        async with asyncio.timeout(20):
            over = [asyncio.create_task(ended(peer)) for peer in peers]
            while sum(each.done() for each in over) < 5:
                await asyncio.sleep(0)
        assert sum(each.done() for each in over) == 5
        for each in over:
            each.cancel()
        await asyncio.gather(*over, return_exceptions=True)
    finally:
        for peer in peers:
            peer.close()
    # And when they are gone, whoever scrapes is answered
    async with asyncio.timeout(20):
        status = b""
        while b"200 OK" not in status:
            reader, writer = await asyncio.open_connection(*metrics.address.split(":"))
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            status = await reader.read()
            writer.close()
    await metrics.stop()
