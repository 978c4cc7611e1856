"""Items that are not let in go back with their reason: gates, no snapshot yet, no worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from scenes.scheduler_place import SEND, Place

from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.wire.channel import dial
from tailrace.wire.scheduler import SERVICE


async def test_items_of_a_function_without_worker_have_no_cell_and_come_back_held(place: Place) -> None:
    tailer = await place.tailer()
    assert tailer.cells == {}
    (ended,) = await tailer.ended(tailer.push(Kind("nobody")))
    assert ended == Ended(Outcome.HELD, "no_worker")


async def test_a_gate_sends_waiting_items_back_and_is_announced(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    first, second, third = tailer.push(SEND, SEND, SEND._replace(collection="news"))
    await worker.until(lambda: worker.open)
    gates = [Gate("send", "reset", "pause", "ann", "outage"), Gate("send", "news", "drop")]
    place.server._apply(SimpleNamespace(gates=gates, quotas=[], functions=[], version=1))
    held, dropped = await tailer.ended([second, third])
    assert held == Ended(Outcome.HELD, "paused")
    assert dropped is not None and dropped.outcome == Outcome.DROPPED
    await tailer.until(lambda: len(tailer.closed) == 2)
    assert {(cell.collection, cell.drop) for cell in tailer.closed} == {("reset", False), ("news", True)}
    assert first not in tailer.ends
    place.server._apply(SimpleNamespace(gates=[], quotas=[], functions=[], version=2))
    await tailer.until(lambda: not tailer.closed)


async def test_nothing_is_admitted_before_the_first_snapshot() -> None:
    place = Place()
    go = asyncio.Event()

    async def watch(on_snapshot: Callable[[Any], None]) -> None:
        await go.wait()
        on_snapshot(SimpleNamespace(gates=[], quotas=[Quota("send", concurrency=2)], functions=[], version=1))
        await asyncio.Event().wait()

    await place.start(watch)
    channel = dial(place.server.address)
    try:
        health = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        worker = await place.worker("send", hold=True)
        tailer = await place.tailer()
        assert tailer.cells == {}
        (ended,) = await tailer.ended(tailer.push(SEND))
        assert ended == Ended(Outcome.HELD, "not_ready")
        assert not (await place.client.inspect()).ready
        with pytest.raises(grpc.aio.AioRpcError):
            await health.Check(request)
        go.set()
        await tailer.until(lambda: tailer.cells)
        assert (await health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        tailer.push(*[SEND] * 5)
        await worker.until(lambda: len(worker.open) == 2)
        state = await place.client.inspect()
        assert state.ready and [(lane.waiting, lane.running, lane.reason) for lane in state.lanes] == [
            (3, 2, "concurrency")
        ]
    finally:
        await channel.close()
        await place.close()
