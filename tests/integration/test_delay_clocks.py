"""A ladder whose streams are on another host: the store's clock says when an item entered a rung, the delay service's
own when it is due. Whatever the two say of each other, an item makes the hops of its chain and no more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.remote import RemoteStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.rules.head import LONGEST_TOGETHER
from tailrace.delay_service.service import DelayService
from tailrace.model.parked import Parked, due_stream, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.testing.clock import ManualClock

from ..scenes.served_stores import serving

#: By delay, in seconds: hops on the default ladder, which is how often an item is written into a rung.
DELAYS = {0.3: 1, 1.0: 1, 7.0: 3, 10.0: 2, 61.0: 2, 310.0: 3}
#: More writes than any of these stories needs: a storm ends here.
STORM = 200


class Apart:
    """A delay service over stores that are served, under two clocks that go on together and may be set apart."""

    def __init__(self, stores: EmbeddedStores, remote: RemoteStores, here: ManualClock, there: ManualClock) -> None:
        self.stores, self.here, self.there = stores, here, there
        config, log = DelayConfig(), remote.delay_log
        self.service = DelayService(log, config, here)
        self.mover = Mover(log, remote.checkpoints, remote.ownership, config, here)
        self.left: dict[str, float] = {}  # when each item came due, by the delay service's clock
        self._read = 0

    async def park(self, *delays: float) -> None:
        now = self.here.wall()
        await self.service.park([Parked("s", str(each), Kind("f"), b"x", now + each, now) for each in delays])

    async def entries(self) -> int:
        """Number of records that were ever written into rungs."""
        log = self.stores.delay_log
        return sum([(await log.bounds(name))[0].end for name in await log.streams() if name.startswith("delay.")])

    async def move(self) -> float | None:
        """Makes every move that may be made. Returns the seconds until the next may; None: nothing waits."""
        rungs = self.mover._rungs
        while True:
            before = [rung.position for rung in rungs]
            sleeps = [await self.mover.step(rung) for rung in rungs]
            assert await self.entries() <= STORM, "items circle in the ladder"
            if before == [rung.position for rung in rungs]:
                break
        found = await self.stores.delay_log.read(due_stream("f"), 0, self._read, 1000, 1 << 20)
        for headers, payload in zip(found.headers, found.payloads, strict=True):
            item = parked_from(headers, payload)
            assert self.here.wall() >= item.due
            self.left[item.id] = self.here.wall() - item.due
        self._read += len(found.positions)
        return min([sleep for sleep in sleeps if sleep is not None], default=None)

    def pass_(self, seconds: float) -> None:
        self.here.advance(seconds)
        self.there.advance(seconds)

    async def run(self) -> None:
        """Moves items until none waits any more."""
        while (sleep := await self.move()) is not None:
            self.pass_(max(LONGEST_TOGETHER, sleep))


@asynccontextmanager
async def apart(folder: Path, ahead: float) -> AsyncIterator[Apart]:
    """Opens a delay service over stores whose clock is so many seconds ahead."""
    here, there = ManualClock(), ManualClock(monotonic=7.0)
    there.jump(ahead)
    async with EmbeddedStores(folder, StoresConfig(), there) as stores, serving(stores.engines()) as address:
        remote = RemoteStores(address)
        bench = Apart(stores, remote, here, there)
        try:
            await bench.mover.open()
            yield bench
        finally:
            await remote.stop()


@pytest.mark.parametrize("ahead", [0.0, -0.4, -5.0, -4000.0, 0.4, 5.0, 4000.0])
async def test_however_far_the_stores_clock_is_off_each_item_makes_its_hops_and_no_more(
    tmp_path: Path, ahead: float
) -> None:
    async with apart(tmp_path, ahead) as bench:
        # When items of many delays go through the ladder
        await bench.park(*DELAYS)
        await bench.run()
        # Then each comes due once, in its time, after as many writes as it has hops
        assert set(bench.left) == set(map(str, DELAYS))
        for delay, hops in DELAYS.items():
            assert bench.left[str(delay)] <= max(1.0, 0.05 * delay) + 2 * LONGEST_TOGETHER * hops
        assert await bench.entries() == sum(DELAYS.values())


@pytest.mark.parametrize("steps", [(-5.0,), (5.0, -2.0), (5.0, -2.0, -2.0), (-3600.0, 3598.0), (60.0, -3.0, -57.0)])
async def test_a_stores_clock_that_is_set_again_and_again_lets_nothing_circle(
    tmp_path: Path, steps: Sequence[float]
) -> None:
    async with apart(tmp_path, 0.0) as bench:
        await bench.park(*DELAYS)
        # When it is set while they wait, each time after something moved
        for step in steps:
            bench.there.jump(step)
            for _ in range(4):
                if (sleep := await bench.move()) is not None:
                    bench.pass_(max(LONGEST_TOGETHER, sleep))
        await bench.run()
        # Then each step costs an item one more hop, and a wait of its rung, at most
        assert set(bench.left) == set(map(str, DELAYS))
        assert await bench.entries() <= sum(DELAYS.values()) + len(steps) * len(DELAYS)
        assert max(bench.left.values()) <= 300 + 0.05 * 310
