"""The rows of one tailer's failed items, and the copies that they speak of."""

import time

from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.parked import Parked, parked_headers
from tailrace.model.workload import Ended, Kind
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig

SUCCESS = Ended(Outcome.SUCCESS)
FAILED = Ended(Outcome.RETRY, "flaky", after=0.0)
FIRST = TailerConfig.model_validate(
    {"name": "first", "source": {"kind": "log", "stream": "s"}, "function": "f", "retry": {"max_attempts": 3}}
)


class WatchedLedger:
    """A ledger that notes which of its methods are asked."""

    def __init__(self, store):
        self.store = store
        self.asked = []

    def __getattr__(self, name):
        self.asked.append(name)
        return getattr(self.store, name)


def overview(tailers, name="first"):
    return next((one for one in tailers.overviews() if one.name == name), None)


async def rows(stores, source="first"):
    return [row.entry for row in await stores.ledger.list(source, 100)]


async def deliver(stores, *items):
    records = [Record(item.payload, headers=parked_headers(item)) for item in items]
    await stores.delay_log.append("due.f", 0, records)


async def settles(tailers, eventually, name, count):
    """Waits until so many items of a tailer are over."""
    await eventually(lambda: (o := overview(tailers, name)) and o.settled + o.parked + o.dead >= count)


async def no_rows(stores, eventually):
    """Waits until the ledger is empty, once everything rests."""
    while await rows(stores):
        await eventually(lambda: True)


def copy(entry):
    """The copy that a row speaks of."""
    return Parked(
        "first", f"first/0/{entry.position}", Kind("f"), b"x", entry.due, entry.first_seen, entry.attempts + 1,
        fence=entry.fence, partition="0", position=entry.position, n=entry.n,
    )  # fmt: skip


async def given_row(stores, place):
    """Makes a row of an item at position 0 that failed under an owner that is gone."""
    await stores.log.append("s", 0, [Record(b"x")])
    owner = await stores.ownership.take("first", "", "gone", 1.0, 0)
    await stores.ledger.open("first", "0", owner.epoch)
    parking = LedgerEntry(0, LedgerPlace.PARKING, n=1, due=5.0, attempts=1, fence=7, first_seen=time.time())
    await stores.ledger.write("first", "0", [(None, parking)], owner.epoch)
    steps = {
        LedgerPlace.PARKING: [],
        LedgerPlace.PARKED: [parking._replace(place=LedgerPlace.PARKED)],
        LedgerPlace.RUNNING: [parking._replace(place=LedgerPlace.RUNNING, fence=9, epoch=1)],
    }[place]
    before = parking
    for after in steps:
        await stores.ledger.write("first", "0", [(before, after)], None)
        before = after
    await stores.ownership.release("first", "", owner.epoch)
    return before
