"""A store server of the version before, which ends gates by its own clock only: its gateway goes on all the same."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tailrace.foundation.duties import Duties
from tailrace.gateway.control import ControlDesk
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.model.errors import InvalidRequest
from tailrace.model.gate import Gate
from tailrace.model.limits import Snapshot
from tailrace.testing.clock import ManualClock


class OlderStore:
    """A Control store that takes no gates to end."""

    def __init__(self, clock: ManualClock) -> None:
        self.refused = 0
        self.asked = asyncio.Event()
        self.snapshots = [
            Snapshot(2, [Gate("f", "", "pause", since=clock.wall() - 2, version=2, until=clock.wall() - 1)])
        ]

    async def belong(self, fleet: str) -> str:
        return fleet

    async def snapshot(self) -> Snapshot:
        return self.snapshots[-1]

    async def end_gates(self, over: Any) -> int:
        self.refused += 1
        raise InvalidRequest("end_gates takes no arguments")

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        if self.refused:
            self.asked.set()
        if version != self.snapshots[-1].version:
            return self.snapshots[-1]
        await asyncio.sleep(0.01)
        return None


async def test_a_gateway_follows_a_store_that_refuses_to_end_gates() -> None:
    clock = ManualClock()
    store, duties = OlderStore(clock), Duties("gateway")
    desk = ControlDesk(cast(Any, store), KnownFunctions(), clock, 1, None, duties)
    await desk.start()
    try:
        async with asyncio.timeout(10):
            # Given a gate that is over, which the store does not end
            await store.asked.wait()
            assert "ending gates" in duties.ailing
            # When something changes there, then the gateway hears of it
            store.snapshots.append(Snapshot(3, []))
            while desk.known().version != 3:
                await asyncio.sleep(0.01)
            while "ending gates" in duties.ailing:
                await asyncio.sleep(0.01)
    finally:
        await desk.stop()
