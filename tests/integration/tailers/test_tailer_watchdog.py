"""Tailers that get nowhere say so, with the cause, and recover."""

from __future__ import annotations

import time

from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.supervisor import Tailers
from tailrace.wire.v1 import scheduler_pb2 as pb

LOG = {"kind": "log", "stream": "s"}


async def fill(stores, count: int) -> None:
    await stores.log.append("s", 0, [Record(b"") for _ in range(count)])


async def stalled(eventually, tailer, cause: str) -> None:
    await eventually(lambda: not tailer.look() and tailer.overview().cause == cause)


async def test_each_way_to_get_nowhere_has_its_cause(stores, scheduler, start, eventually):
    await fill(stores, 10)
    tailer = await start(source=LOG, function="f", stalled_after=0.3)
    # no worker
    await stalled(eventually, tailer, "no_worker")
    assert tailer.overview().why == "no worker runs f" and tailer.overview().idle >= 0.3
    # a gate
    scheduler.closed = [pb.ClosedCell(function="f", reason="f is paused by ann: deploy")]
    scheduler.allow("f")
    await stalled(eventually, tailer, "gate")
    assert "ann" in tailer.overview().why
    # a function that never ends
    scheduler.closed = []
    scheduler.decide = lambda flight, index: None
    scheduler.announce()
    await stalled(eventually, tailer, "slow")
    assert "10 items are out" in tailer.overview().why
    # the scheduler is gone
    await scheduler.stop()
    await stalled(eventually, tailer, "scheduler")
    # and all is well again
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS)
    scheduler.sessions.clear()
    await scheduler.start(scheduler.address)
    await eventually(lambda: tailer.look() and tailer.overview().settled == 10)
    assert tailer.overview().cause == ""


async def test_a_paused_tailer_with_lag_and_a_clogged_one(stores, scheduler, start, eventually):
    scheduler.allow("f")
    scheduler.closed = [pb.ClosedCell(function="f", reason="f is clogged: boom", probes=1, since=5.0)]
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "boom")
    await fill(stores, 10)
    tailer = await start(source=LOG, function="f", stalled_after=0.3)
    await stalled(eventually, tailer, "clogged")
    assert (tailer.overview().state, tailer.overview().since) == ("clogged", 5.0)
    tailer.pause()
    await stalled(eventually, tailer, "paused")


async def test_the_health_of_all_is_told_when_it_changes(environment, stores, scheduler, parking, eventually):
    told: list[tuple[str, bool]] = []

    async def on_health(name: str, well: bool) -> None:
        told.append((name, well))

    config = TailerConfig.model_validate({"name": "t", "source": LOG, "function": "f", "stalled_after": 0.3})
    tailers = Tailers(
        [config], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1), due=False, on_health=on_health
    )
    await fill(stores, 10)
    await tailers.start()
    try:
        await eventually(lambda: ("", False) in told)
        assert told == [("t", True), ("", True), ("t", False), ("", False)]
        scheduler.allow("f")
        await eventually(lambda: told[-2:] == [("t", True), ("", True)])
    finally:
        await tailers.stop()


async def test_a_queue_whose_items_are_not_due_is_healthy_and_one_that_nobody_runs_is_not(
    stores, scheduler, start, eventually
):
    scheduler.allow("f")
    later = time.time() + 1000
    await stores.queue.submit([NewItem(Kind("f", 2), b"", due=later)])
    tailer = await start(source={"kind": "queue"}, stalled_after=0.3)
    await eventually(lambda: tailer.overview().lag == 1)
    began = time.monotonic()
    await eventually(lambda: not tailer.look() or time.monotonic() > began + 1)
    assert tailer.overview().healthy
    await stores.queue.submit([NewItem(Kind("nobody", 2), b"")])
    await stalled(eventually, tailer, "no_worker")
    assert tailer.overview().why == "no worker runs nobody"
