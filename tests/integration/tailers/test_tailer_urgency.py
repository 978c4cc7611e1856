"""Priority and deadline inside a stream, against real embedded stores and a scheduler that does as it is told."""

import time

import pytest

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record

LOG = {"kind": "log", "stream": "s"}
RANKED = {"source": LOG, "function": "f", "priority": {"header": "urgency", "default": "eventual"}}
URGENT = (("urgency", "interactive"),)
SUCCESS = Ended(Outcome.SUCCESS)


async def fill(stores, count, headers=(), key="", payload=b"%d"):
    return await stores.log.append("s", 0, [Record(payload % n, key=key, headers=headers) for n in range(count)])


def started(scheduler):
    """The positions that were handed out, in the order of hand-outs."""
    return [int(id_.rsplit("/", 1)[1]) for id_ in scheduler.ids]


def allow(scheduler, limit=10, levels=(0, 2)):
    scheduler.total = 4 * limit
    for level in levels:
        scheduler.allow("f", limit, level)


async def position(stores):
    marks = await stores.checkpoints.load("t")
    return marks["0"].position if "0" in marks else 0


async def over(eventually, tailer, count):
    await eventually(lambda: (o := tailer.overview()).settled + o.parked + o.dead == count)


@pytest.mark.parametrize(
    ("priority", "record"),
    [
        (RANKED["priority"], Record(b"now", headers=URGENT)),
        ({"field": "order.urgency"}, Record(b'{"order": {"urgency": "interactive"}}')),
        ({"rules": [{"field": "amount", "at_least": 1000, "priority": "interactive"}]}, Record(b'{"amount": 1000}')),
    ],
)
async def test_urgent_items_start_before_a_backlog_that_came_before_them(
    stores, scheduler, start, eventually, priority, record
):
    # Given a backlog of which ten may be out, and whose payloads are more than may stay in memory
    scheduler.decide = lambda flight, index: SUCCESS if flight.kinds[index].priority == 0 else None
    allow(scheduler)
    await fill(stores, 400)
    keys = RANKED | {"priority": priority, "window": {"items": 64, "positions": 1000}, "look_ahead": 500}
    tailer = await start(**keys)
    await eventually(lambda: tailer.overview().held == 390)
    # When urgent items are appended, then they start at once, and the frontier stays behind the backlog
    await stores.log.append("s", 0, [record] * 30)
    await over(eventually, tailer, 30)
    assert set(started(scheduler)) == {*range(10), *range(400, 430)}
    assert await position(stores) == 0
    # When the backlog's turn comes, it runs in its order
    scheduler.decide = lambda flight, index: SUCCESS
    session = scheduler.session
    for flight in list(scheduler.flights):
        for index, kind in enumerate(flight.kinds):
            if kind.priority != 0:
                session.end(flight, index, SUCCESS)
    await over(eventually, tailer, 430)
    backlog = [position for position in started(scheduler) if position < 400]
    assert backlog == list(range(400))


async def test_the_stream_is_read_on_only_so_far(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    allow(scheduler)
    await fill(stores, 1000)
    tailer = await start(look_ahead=50, **RANKED)
    await eventually(lambda: tailer.overview().held >= 45)
    assert 55 <= tailer.overview().read <= 60
    # What waits for another reason is no reason not to read on
    scheduler.limits.clear()
    scheduler.announce()
    tailer.pause()
    tailer.resume()
    assert tailer.overview().read <= 60


async def test_a_key_goes_when_its_most_urgent_item_would_and_stays_in_order(stores, scheduler, start, eventually):
    # Given three keys with a backlog each, nothing of which may run yet
    scheduler.decide = lambda flight, index: None
    scheduler.functions.clear()
    records = [Record(b"", key=key) for key in "abc" for _ in range(3)]
    await stores.log.append("s", 0, records)
    allow(scheduler, 1, levels=(0,))
    tailer = await start(order="key", key={"record": True}, **RANKED)
    await eventually(lambda: tailer.overview().held == 9)
    # When something urgent of the last key comes, then that key's items go, one by one, and no other
    await stores.log.append("s", 0, [Record(b"", key="c", headers=URGENT)])
    for count, position in enumerate((6, 7, 8, 9), 1):
        await eventually(lambda count=count: len(scheduler.flights) == count)
        assert started(scheduler)[-1] == position and scheduler.flights[-1].kinds[0].priority == 0
        scheduler.session.end(scheduler.flights[-1], 0, SUCCESS)
    await over(eventually, tailer, 4)
    # Then the others, when there is room for theirs
    scheduler.decide = lambda flight, index: SUCCESS
    allow(scheduler, 10)
    await over(eventually, tailer, 10)
    for key in range(2):
        assert [each for each in started(scheduler)[4:] if each // 3 == key] == [3 * key, 3 * key + 1, 3 * key + 2]


async def test_a_dead_letter_of_a_lifted_item_has_its_own_priority(stores, scheduler, start, eventually):
    await stores.log.append("s", 0, [Record(b"", key="a"), Record(b"", key="a", headers=URGENT)])
    scheduler.decide = lambda flight, index: Ended(Outcome.FATAL, "broken")
    allow(scheduler, levels=(0,))
    tailer = await start(order="key", key={"record": True}, **RANKED)
    await over(eventually, tailer, 2)
    letters = await stores.dead_letters.list(LetterFilter(), 10)
    assert sorted((letter.position, letter.kind.priority) for letter in letters) == [(0, 2), (1, 0)]


async def test_what_expired_is_never_started_and_counted_as_expired(stores, scheduler, start, eventually):
    await fill(stores, 5, headers=(("until", "2020-01-01T00:00:00Z"),))
    await fill(stores, 5, headers=(("until", "1h"),))
    scheduler.allow("f")
    tailer = await start(source=LOG, function="f", expires={"header": "until"})
    await over(eventually, tailer, 10)
    assert started(scheduler) == [5, 6, 7, 8, 9]
    assert tailer.audits()[0].counts == {"expired": 5, "succeeded": 5}
    assert all(time.time() < extra.expires_at < time.time() + 3601 for extra in scheduler.flights[0].extras.values())
    assert await stores.dead_letters.list(LetterFilter(), 10) == []


@pytest.mark.parametrize("on_expiry", ["settle", "dead_letter"])
@pytest.mark.parametrize("order", ["none", "key"])
async def test_what_expires_while_it_is_held_is_over_at_its_time(
    stores, scheduler, start, eventually, on_expiry, order
):
    # Given items that nobody may run, most of them without their payload in memory
    await fill(stores, 60, key="k")
    scheduler.allow("f", 1000, 0)
    scheduler.allow("f", 0)
    keys = {"source": LOG, "function": "f", "window": {"items": 16}, "key": {"record": True}, "order": order}
    tailer = await start(
        **keys, priority={"header": "urgency", "default": "eventual"}, expires="1s", on_expiry=on_expiry
    )
    # When their time comes, then all are over, as the file says, and the frontier passes them
    await over(eventually, tailer, 60)
    assert scheduler.flights == []
    assert tailer.audits()[0].counts == {"expired": 60}
    letters = await stores.dead_letters.list(LetterFilter(), 100)
    assert len(letters) == (60 if on_expiry == "dead_letter" else 0)
    assert {(letter.outcome, letter.reason) for letter in letters} <= {
        ("expired", "its deadline passed before it started")
    }
    for letter in letters[:3]:
        assert (await stores.dead_letters.get(letter.id)).payload == b"%d" % letter.position
    await tailer.drain(5)
    await tailer.stop()
    assert await position(stores) == 60


async def test_what_the_scheduler_says_expired_ends_as_the_file_says(stores, scheduler, parking, start, eventually):
    scheduler.decide = lambda flight, index: Ended(
        Outcome.EXPIRED if flight.payloads[index] == b"0" else Outcome.RETRY, "late"
    )
    scheduler.allow("f")
    await fill(stores, 2)
    tailer = await start(source=LOG, function="f", expires="1h", on_expiry="dead_letter")
    await over(eventually, tailer, 2)
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert (letter.outcome, letter.id, letter.reason) == ("expired", "t/0/0", "late")
    assert tailer.audits()[0].counts == {"expired": 1, "delayed": 1}
    # and what is tried again later takes its deadline along
    [parked] = parking.items
    assert parked.expires_at == scheduler.flights[0].extras[1].expires_at > time.time() + 3000


async def test_what_cannot_be_read_of_a_record_has_the_default_and_is_counted_once(
    stores, scheduler, start, eventually
):
    # Given items that are held and read again, one of which names a level that is none
    allow(scheduler, limit=1, levels=(0, 1, 2))
    await fill(stores, 3)
    await fill(stores, 1, headers=(("urgency", "at once"),))
    tailer = await start(**RANKED | {"window": {"items": 2, "positions": 100}})
    # When all of them ran, then it was counted once
    await over(eventually, tailer, 4)
    assert tailer.overview().unreadable == 1
