"""A thousand items that run for an hour, in a stream of many: the others pass them, the frontier too, and the tailer's
memory does not grow with their number."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import deque

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record

SOURCE = {"kind": "log", "stream": "s"}
LONG, SHORT, PAYLOAD = 1000, 20_000, 200
#: Items before the first look at the memory (which fill what the log keeps of its last records), and the bytes
#: that each of the others may add to it: its payload alone is two hundred.
EARLY, GROWTH = 12_000, 10
#: Seconds: leases of seven. A start anew, where the machine stands for a whole lease, leaves its error and with it the
#: tailer before it in the captured log, which is no memory of the tailer's.
HEARTBEAT = 1.0


async def test_a_thousand_long_items_hold_up_nobody_and_memory_stays_flat(
    stores, scheduler, parking, start, eventually
):
    # Given a stream that begins with items that do not end
    scheduler.decide = lambda flight, index: None if flight.payloads[index][:1] == b"l" else Ended(Outcome.SUCCESS)
    scheduler.flights = deque(maxlen=1)
    scheduler.leases = deque(maxlen=1)
    scheduler.allow("f", 4000)
    window = {"items": 2000, "bytes": "1MiB", "positions": 100_000, "detach_after": "0.5s"}
    await stores.log.append("s", 0, [Record(b"l%d" % n) for n in range(LONG)])

    async def passed(position):
        async with asyncio.timeout(30):
            while (await stores.checkpoints.load("t")).get("0", (0,))[0] != position:
                await asyncio.sleep(0.02)

    async def fill(count):
        for first in range(0, count, 1000):
            await stores.log.append("s", 0, [Record((b"s%d" % n).ljust(PAYLOAD)) for n in range(first, first + 1000)])

    tracemalloc.start()
    try:
        await fill(EARLY)
        tailer = await start(HEARTBEAT, source=SOURCE, function="f", window=window)
        await eventually(lambda: tailer.overview().settled == EARLY, 60)
        await passed(LONG + EARLY)
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
    # And the checkpoint has passed them: each has a row and a guard, written together
    await passed(LONG + SHORT)
    assert sorted(item.position for item in parking.items) == list(range(LONG))
    assert (await stores.ledger.delayed("t"))["0"].waiting == LONG
    # When the tailer is followed by another one, where nobody says that they run, they are to run again, as copies
    await tailer.stop()
    scheduler.flights.clear()
    again = await start(HEARTBEAT, source=SOURCE, function="f", window=window)
    await eventually(lambda: again.overview().parked == LONG, 60)
    assert sorted(item.position for item in parking.items[LONG:]) == list(range(LONG))
    assert not scheduler.flights
