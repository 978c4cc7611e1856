"""`order: key | partition` against real embedded stores and a scheduler that does as it is told."""

import random
from collections import defaultdict

import pytest

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.wire.v1 import scheduler_pb2 as pb

LOG = {"kind": "log", "stream": "s"}
KEYED = {"source": LOG, "function": "f", "order": "key", "key": {"record": True}}
SUCCESS = Ended(Outcome.SUCCESS)
AT_ONCE = {"backoff": "list", "delays": ["0s"], "max_attempts": 1000, "jitter": 0}


async def fill(stores, keys, partition=0, headers=()):
    records = [Record(key.encode(), key=key, headers=headers) for key in keys]
    await stores.log.append("s", partition, records)


async def position(stores, partition="0"):
    marks = await stores.checkpoints.load("t")
    return marks[partition].position if partition in marks else 0


class Watcher:
    """A watcher of every hand-out and every end; `faults` lists those that were out of the order of the source, or
    overlapped."""

    def __init__(self, ends):
        self.ends = ends
        self.out = {}  # key → the position that is out
        self.read = defaultdict(set)  # key → the positions handed out so far
        self.done = defaultdict(list)  # key → the positions done, in that order
        self.since = {}  # key → the last position done in this session
        self.attempts = defaultdict(list)
        self.faults = []

    def restarted(self):
        """Notes that a session begins: items that are done and not noted yet may be repeated, in order. Another tailer
        goes on, or the same one after it was held up for longer than its lease."""
        self.out.clear()
        self.since.clear()

    def __call__(self, flight, index):
        key, position = flight.extras[index].key, int(flight.ids[index].rsplit("/", 1)[1])
        if position <= self.since.get(key, -1):
            self.faults.append(f"{position} of {key} after {self.since[key]}")
        if self.out.get(key, position) != position:
            self.faults.append(f"{position} and {self.out[key]} of {key} are out at once")
        if not {place for place in self.read[key] if place < position} <= set(self.done[key]):
            self.faults.append(f"{position} of {key} passed one that is not done")
        self.read[key].add(position)
        self.attempts[position].append(flight.attempts[index])
        ended = self.ends(position)
        if ended is None:
            self.out[key] = position
        elif ended.outcome in (Outcome.SUCCESS, Outcome.FATAL):
            if position not in self.done[key]:
                self.done[key].append(position)
            self.since[key] = position
        return ended


def random_ends(chance):
    """Outcomes at random: success for half of the items, and everything else that an item may meet."""

    def ends(position):
        roll = chance.random()
        if roll < 0.5:
            return SUCCESS
        if roll < 0.6:
            return Ended(Outcome.THROTTLED, after=0.001)
        if roll < 0.65:
            return Ended(Outcome.FATAL, "broken")
        return Ended(Outcome.LOST) if roll < 0.7 else Ended(Outcome.RETRY, "flaky")

    return ends


async def test_every_key_keeps_its_order_whatever_happens_to_its_items(stores, scheduler, start, eventually):
    chance = random.Random(4)
    keys = [chance.choice("abcdefgh") for _ in range(400)]
    scheduler.decide = watcher = Watcher(random_ends(chance))
    scheduler.began = watcher.restarted
    scheduler.allow("f")
    await fill(stores, keys)
    tailer = await start(retry=AT_ONCE, **KEYED)
    await eventually(lambda: sum(map(len, watcher.done.values())) == 400, 30)
    for key in "abcdefgh":
        assert watcher.done[key] == [position for position, each in enumerate(keys) if each == key]
    assert watcher.faults == []
    await tailer.drain(5)
    await tailer.stop()
    assert await position(stores) == 400 and tailer.overview().parked == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_key_keeps_its_order_through_restarts(stores, scheduler, start, eventually, seed):
    chance = random.Random(seed)
    keys = [chance.choice("abcde") for _ in range(120)]
    watcher = Watcher(random_ends(chance))
    scheduler.began = watcher.restarted
    scheduler.allow("f")
    await fill(stores, keys)
    # Given tailers that stop anywhere, some of their items still out
    for stop in (30, 60, 90):
        scheduler.decide = lambda flight, index: watcher(flight, index) if len(count()) < stop else None  # noqa: B023

        def count():
            return {position for done in watcher.done.values() for position in done}

        tailer = await start(retry=AT_ONCE, **KEYED)
        await eventually(lambda: len(count()) >= stop, 30)  # noqa: B023
        await tailer.stop()
    # When the last one goes on, then all end, each key's in order
    scheduler.decide = watcher
    await start(retry=AT_ONCE, **KEYED)
    await eventually(lambda: len(count()) == 120, 30)
    assert watcher.faults == []


async def test_a_failed_item_holds_its_key_and_no_other(stores, scheduler, parking, start, eventually):
    # Given a key whose first item fails and must wait
    failing = [Ended(Outcome.RETRY, "flaky", after=3600.0)]
    scheduler.decide = watcher = Watcher(lambda position: failing[0] if position == 0 else SUCCESS)
    scheduler.allow("f")
    await fill(stores, ["a", "b", "a", "c", "b", "a"])
    # When the stream is read
    tailer = await start(**KEYED)
    # Then the others go on, the failed one is not parked, and its key waits in the stream
    await eventually(lambda: tailer.overview().settled == 3)
    assert (parking.items, watcher.done) == ([], {"a": [], "b": [1, 4], "c": [3]})
    await eventually(lambda: tailer.overview().held == 3)


async def test_after_its_last_attempt_an_item_is_dead_and_its_key_goes_on(stores, scheduler, start, eventually):
    scheduler.decide = watcher = Watcher(lambda position: Ended(Outcome.RETRY, "flaky") if position == 0 else SUCCESS)
    scheduler.allow("f")
    await fill(stores, ["a", "a"])
    tailer = await start(retry=AT_ONCE | {"max_attempts": 3}, **KEYED)
    await eventually(lambda: (tailer.overview().settled, tailer.overview().dead) == (1, 1))
    assert watcher.attempts == {0: [1, 2, 3], 1: [1]}
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert (letter.id, letter.attempts) == ("t/0/0", 3)


async def test_items_of_different_keys_go_in_one_flight_and_those_without_one_are_in_no_order(
    stores, scheduler, parking, start, eventually
):
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky") if not flight.payloads[index] else None
    scheduler.allow("f")
    await fill(stores, ["a", "", "b", "", "a", "c"])
    tailer = await start(**KEYED)
    await eventually(lambda: tailer.overview().parked == 2)
    assert scheduler.flights[0].ids == ["t/0/0", "t/0/1", "t/0/2", "t/0/3", "t/0/5"]
    assert (tailer.overview().parked, tailer.overview().held, len(scheduler.flights)) == (2, 1, 1)


async def test_order_of_a_partition_lets_one_item_of_it_out_at_a_time(stores, scheduler, start, eventually):
    await stores.log.create("s", 2)
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await fill(stores, "abc", partition=0)
    await fill(stores, "ab", partition=1)
    tailer = await start(source=LOG, function="f", order="partition")
    for done in range(3):
        await eventually(lambda done=done: len(scheduler.ids) == min(2 * done + 2, 5))
        assert tailer.overview().in_flight == min(2, 5 - 2 * done)
        for flight in list(scheduler.flights):
            scheduler.session.end(flight, 0, SUCCESS)
    await eventually(lambda: tailer.overview().settled == 5)
    assert [id_ for id_ in scheduler.ids if id_.startswith("t/0/")] == ["t/0/0", "t/0/1", "t/0/2"]


async def test_at_the_bound_of_positions_the_stream_clogs_and_says_why(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: (
        Ended(Outcome.RETRY, "down", after=3600.0) if flight.payloads[index] == b"a" else SUCCESS
    )
    scheduler.allow("f")
    await fill(stores, ["b", *"a" * 90, "b"])
    tailer = await start(window={"items": 16, "positions": 50}, **KEYED)
    await eventually(lambda: tailer.overview().held == 50)
    overview = tailer.overview()
    assert (overview.state, overview.settled) == ("clogged", 1)
    assert "behind the item at 1 of key 'a' (attempt 2) (49)" in overview.detail


async def test_more_may_wait_than_memory_holds(stores, scheduler, start, eventually):
    # Given a window that keeps few payloads, and one key that is stuck with more items than that
    stuck = [True]
    scheduler.decide = watcher = Watcher(
        lambda position: Ended(Outcome.THROTTLED, after=0.05) if position == 0 and stuck[0] else SUCCESS
    )
    scheduler.allow("f")
    await fill(stores, [*"a" * 60, *"bcd" * 20])
    tailer = await start(window={"items": 16}, **KEYED)
    # Then the others pass
    await eventually(lambda: tailer.overview().settled == 60)
    # And when it is no longer stuck, all of its items come, read again from the source
    stuck[0] = False
    await eventually(lambda: tailer.overview().settled == 120)
    assert watcher.done["a"] == list(range(60))


async def test_a_paused_collection_lets_the_others_of_its_stream_flow(stores, scheduler, start, eventually):
    # Given a gate on one collection
    scheduler.closed = [pb.ClosedCell(function="f", collection="invoices", reason="paused by ann: month end")]
    scheduler.decide = watcher = Watcher(lambda position: SUCCESS)
    scheduler.allow("f")
    for collection in ("invoices", "letters") * 5:
        await fill(stores, ["a", "b"], headers=(("collection", collection),))
    keys = KEYED | {"collection": {"header": "collection"}, "order": "none"}
    tailer = await start(**keys)
    # Then the other collection flows, and the paused one is held and said to be
    await eventually(
        lambda: (
            (tailer.overview().settled, tailer.overview().state, tailer.overview().detail)
            == (10, "running", "10 items are held: paused by ann: month end (10)")
        )
    )
    assert {int(id_.rsplit("/", 1)[1]) // 2 % 2 for id_ in scheduler.ids} == {1}
    # And with the gate gone it runs, without a single attempt spent
    scheduler.closed = []
    watcher.done.clear()
    scheduler.announce()
    await eventually(lambda: tailer.overview().settled == 20)
    assert all(attempts == [1] for attempts in watcher.attempts.values())
