"""A pool of suspects: few processes start at a time, and stay warm for later items. A pool of many: which process
replaces an executor that died, and how soon."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from tailrace.model.workload import Ended, Extra, Flight, Kind
from tailrace.runtime import pool as pools
from tailrace.runtime.batch import AssignedFlight
from tailrace.runtime.frames import Done, ExecutorSetup, Failed, Ready
from tailrace.runtime.pool import Pool, Reports
from tailrace.runtime.rules.suspicion import ProcessDeath

SETUP = ExecutorSetup([], [], ["f"], 1, 1, 1 << 20, 5.0, 30.0)


class FakeProcess:
    """A process that a test makes ready."""

    def __init__(self, setup: ExecutorSetup, *, on_frame: Any, on_death: Any) -> None:
        self.live: set[int] = set()
        self.waits: set[int] = set()
        self.notes: dict[int, str] = {}
        self.kinds: dict[Kind, int] = {}
        self.ready = self.retiring = False
        self.runs = self.covered = self.pid = 0
        self.timer = self.started = self.given = 0.0
        self.dead = asyncio.Event()
        self.why = ""
        self.was_running: set[int] = set()
        self.was_waiting: set[int] = set()
        self._say = on_frame
        self._told = on_death

    async def start(self) -> None:
        self.started = asyncio.get_running_loop().time()

    def send(self, frame: Any) -> None: ...

    def quit(self) -> None: ...

    def kill(self, why: str) -> None:
        self.why = why

    def die(self, code: int, overdue: bool = False) -> None:
        """Ends the process, which is reaped."""
        self._told(self, ProcessDeath(code, self.why, overdue=overdue))

    def say(self, frame: Any) -> None:
        self._say(self, frame)

    def load(self) -> None:
        self._say(self, Ready())

    def end(self) -> None:
        """Lets its items succeed."""
        self._say(self, Done(list(self.live), []))


def pool_of(size: int, *, fresh: bool = True) -> Pool:
    def ended(succeeded: list[int], ends: dict[int, Ended]) -> None: ...

    reports = Reports(lambda keys: 100.0, ended, lambda notes: None, lambda waits, goes_on: None, lambda: None)
    return Pool("f (alone)", SETUP, size, reports, load_limit=60.0, fresh=fresh, process=FakeProcess)  # type: ignore[arg-type]


async def of_one() -> tuple[Pool, FakeProcess]:
    """A pool of many items whose one process is ready."""
    pool = pool_of(1, fresh=False)
    starting = asyncio.ensure_future(pool.start())
    [process] = await started(pool)
    process.load()
    await starting
    return pool, process


def place(pool: Pool, count: int) -> None:
    extras = {index: Extra(alone=True, crashes=1) for index in range(count)}
    ids = [str(index) for index in range(count)]
    flight = Flight(1, 1, [Kind("f")] * count, ids, [b""] * count, [1] * count, extras)
    pool.place(AssignedFlight(1, flight, [1] * count), 0, count)


async def turns() -> None:
    """Lets everything happen that can by itself."""
    for _ in range(10):
        await asyncio.sleep(0)


async def started(pool: Pool) -> list[FakeProcess]:
    await turns()
    return list(pool.executors)  # type: ignore[arg-type]


async def test_few_start_at_a_time_so_that_the_first_is_ready_soon() -> None:
    pool = pool_of(12)
    place(pool, 20)
    assert len(await started(pool)) == 3
    for expected in (4, 5, 6):
        starting = [each for each in await started(pool) if not each.ready]
        assert len(starting) == 3
        starting[0].load()
        assert len(starting[0].live) == 1
        assert len(await started(pool)) == expected
    for _ in range(12):
        for each in [each for each in await started(pool) if not each.ready]:
            each.load()
    assert len(await started(pool)) == 12


async def test_one_that_ran_all_there_was_waits_for_the_next_and_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "KEPT_IDLE", 0.05)
    pool = pool_of(4)
    place(pool, 1)
    [process] = await started(pool)
    process.load()
    process.end()
    # When another one comes soon, then it runs in the same process
    place(pool, 1)
    assert len(process.live) == 1
    assert await started(pool) == [process]
    # And when nothing comes any more, the process ends
    await asyncio.sleep(0.1)
    assert not process.retiring
    process.end()
    async with asyncio.timeout(5):
        while not process.retiring:
            await asyncio.sleep(0.01)


async def test_one_whose_lease_was_over_is_replaced_at_once_however_often() -> None:
    """The tailer or the scheduler was away: the pool is not broken, and when they are back there is much to do."""
    pool, process = await of_one()
    for _ in range(8):
        process.die(-signal.SIGKILL, overdue=True)
        [process] = await started(pool)
        process.load()
    assert pool.deaths == 0


async def test_one_that_dies_young_is_replaced_ever_more_slowly() -> None:
    pool, process = await of_one()
    process.die(3)
    [process] = await started(pool)
    process.load()
    process.die(-signal.SIGSEGV)
    assert await started(pool) == []
    assert pool.deaths == 2


async def test_one_that_can_no_longer_load_is_replaced_ever_more_slowly() -> None:
    """A broken module has replaced the former one while the worker ran: it is told so without taking a processor."""
    pool, process = await of_one()
    process.die(3)
    [process] = await started(pool)
    process.say(Failed("broken.py, line 1: no"))
    process.die(-signal.SIGKILL)
    assert await started(pool) == []
    assert pool.failure == "broken.py, line 1: no"
