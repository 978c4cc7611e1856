"""A thousand items that run for an hour, in a stream of many: the others pass them, that they are done is durable, and
the tailer's memory does not grow with their number."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import deque

from tailrace.sdk.model.outcome import Outcome
from tailrace.sdk.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.tailers.rules.frontier import decode

SOURCE = {"kind": "log", "stream": "s"}
LONG, SHORT, PAYLOAD = 1000, 20_000, 200
#: Of them, those before the first look at the memory (which fill what the log keeps of its last records), and the bytes
#: that each of the others may add to it: a position above the frontier is two, where its payload alone is two hundred.
EARLY, GROWTH = 12_000, 10


async def test_a_thousand_long_items_hold_up_nobody_and_memory_stays_flat(stores, scheduler, start, eventually):
    # Given a stream that begins with items that do not end
    scheduler.decide = lambda flight, index: None if flight.payloads[index][:1] == b"l" else Ended(Outcome.SUCCESS)
    scheduler.flights = deque(maxlen=1)
    scheduler.leases = deque(maxlen=1)
    scheduler.allow("f", 4000)
    window = {"items": 2000, "bytes": "1MiB", "positions": 100_000}
    await stores.log.append("s", 0, [Record(b"l%d" % n) for n in range(LONG)])

    async def fill(count):
        for first in range(0, count, 1000):
            await stores.log.append("s", 0, [Record((b"s%d" % n).ljust(PAYLOAD)) for n in range(first, first + 1000)])

    tracemalloc.start()
    try:
        await fill(EARLY)
        tailer = await start(source=SOURCE, function="f", window=window)
        await eventually(lambda: tailer.overview().settled == EARLY, 60)
        gc.collect()
        early = tracemalloc.get_traced_memory()[0]
        # Then all others are done while these are out
        await fill(SHORT - EARLY)
        await eventually(lambda: tailer.overview().settled == SHORT, 60)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - early < GROWTH * (SHORT - EARLY)
    finally:
        tracemalloc.stop()
    assert tailer.overview().in_flight == LONG
    # And that is durable: the checkpoint is below the first of them, with what is done above it
    async with asyncio.timeout(20):
        while sum(decode((mark := (await stores.checkpoints.load("t"))["0"]).ahead)) < SHORT:
            await asyncio.sleep(0.02)
    assert mark.position == 0
    # When the tailer is followed by another one, only the long ones run again
    await tailer.stop()
    ran = []
    scheduler.decide = lambda flight, index: ran.append(flight.payloads[index][:1]) or Ended(Outcome.SUCCESS)
    again = await start(source=SOURCE, function="f", window=window)
    await eventually(lambda: again.overview().settled == LONG, 60)
    assert ran == [b"l"] * LONG
    async with asyncio.timeout(20):
        while (await stores.checkpoints.load("t"))["0"].position != LONG + SHORT:
            await asyncio.sleep(0.02)
