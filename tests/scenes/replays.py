"""A live tailer of a log that is done, replays of it that operators order, and the payloads that ran in them."""

from __future__ import annotations

import asyncio

from tailrace.gateway.replay_orders import ReplayOrders
from tailrace.model.replay import Bound, ReplayOrder, ReplayState
from tailrace.model.seek import END, START
from tailrace.stores.log.log import Record
from tailrace.tailers.replay.progress import ReplayProgress

LIVE = {"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f", "retry": {"max_attempts": 3}}
REPORTING = 3
EVERYTHING = ReplayOrder("t", Bound(edge=START), Bound(edge=END))


async def fill(stores, count, stream="s"):
    await stores.log.append(stream, 0, [Record(b"%d" % n) for n in range(count)])


async def live_is_done(stores, scheduler, count, eventually, decide=None):
    """Runs the live tailer until it did everything. Returns its checkpoint."""
    scheduler.decide = decide or scheduler.decide
    scheduler.allow("f")
    scheduler.allow("f", priority=REPORTING)
    await fill(stores, count)
    mark = None
    async with asyncio.timeout(10):
        while mark is None or mark.position < count:
            await asyncio.sleep(0.01)
            mark = (await stores.checkpoints.load("t")).get("0")
    return mark


def orders(stores, at_once=4, answer_within=10.0):
    """Makes the orders of operators, as a gateway takes them, over the same stores."""
    progress = ReplayProgress(stores.checkpoints, stores.ledger, stores.ownership)
    return ReplayOrders(stores.replays, progress, at_once, answer_within=answer_within)


async def forgotten(stores, name):
    """Waits until a replay has no checkpoint any more, which goes after its row says that it is over."""
    async with asyncio.timeout(5):
        while await stores.checkpoints.load(name):
            await asyncio.sleep(0.01)


async def over(stores, number, state=ReplayState.DONE):
    async with asyncio.timeout(20):
        while (found := await orders(stores).get(number)).replay.state is not state:
            await asyncio.sleep(0.02)
    return found


def payloads_of(scheduler, name):
    return [
        int(flight.payloads[index])
        for flight in scheduler.flights
        for index, id_ in enumerate(flight.ids)
        if id_.startswith(f"{name}/")
    ]


def dead_of(name):
    from tailrace.model.dead_letter import LetterFilter

    return LetterFilter(tailer=name)
