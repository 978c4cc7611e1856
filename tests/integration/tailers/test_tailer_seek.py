"""Moving a checkpoint by hand: only forward, only while nothing is out, and nothing passed without a note."""

from __future__ import annotations

import pytest

from tailrace.model.drop import Cause
from tailrace.model.errors import InvalidRequest
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.seek import END, START, Seek
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.supervisor import Tailers

LOG = {"kind": "log", "stream": "s"}


async def fill(stores, count):
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(count)])


@pytest.fixture
async def tailers(environment, scheduler, parking):
    config = TailerConfig.model_validate({"name": "t", "source": LOG, "function": "f", "retry": {"max_attempts": 3}})
    one = Tailers([config], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1), due=False)
    await one.start()
    yield one
    await one.stop()


def only(tailers):
    return tailers.overviews()[0]


async def test_what_is_passed_is_dropped_with_a_note_and_the_rest_runs(stores, scheduler, tailers, eventually):
    # Given a tailer that did 40 of 100 items, of which one was parked, and holds the others without credit
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY if flight.payloads[index] == b"7" else Outcome.SUCCESS)
    scheduler.allow("f")
    await fill(stores, 40)
    await eventually(lambda: only(tailers).settled + only(tailers).parked == 40)
    scheduler.allow("f", 0)
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(40, 100)])
    with pytest.raises(InvalidRequest, match="pause it first"):
        await tailers.seek(Seek("t", 50, why="x"))
    tailers.tailer("t").pause()
    done = 40
    await eventually(lambda: tailers.tailer("t")._pump._partitions["0"].mark() is None)
    # When somebody looks first, then nothing changes
    [looked] = await tailers.seek(Seek("t", 90, dry_run=True))
    assert (looked.before, looked.after, looked.dropped) == (done, 90, 90 - done)
    assert (await stores.checkpoints.load("t"))["0"].position == done
    # When the checkpoint is moved
    [move] = await tailers.seek(Seek("t", 90, who="ann@host", why="bad batch"))
    assert move == looked
    [drop] = await stores.drops.within("t", "0", 0, 100)
    assert (drop.first, drop.last, drop.cause, drop.who, drop.why) == (done, 89, Cause.SEEK, "ann@host", "bad batch")
    # Then it stays paused, goes on behind the gap when resumed, and the audit adds up
    assert only(tailers).state == "paused"
    before = len(scheduler.flights)
    scheduler.allow("f")
    tailers.tailer("t").resume()
    await eventually(lambda: (only(tailers).classes.get("succeeded", 0)) == done - 1 + 10)
    ran = [id_ for flight in scheduler.flights[before:] for id_ in flight.ids]
    assert sorted(int(id_.rpartition("/")[2]) for id_ in ran) == list(range(90, 100))
    [audit] = await tailers.audits("t")
    assert (audit.good, audit.counts) == (True, {"succeeded": done + 9, "delayed": 1, "dropped": 90 - done})
    [part] = await tailers.audits("t", "0", (80, 95))
    assert part.counts == {"dropped": 10, "succeeded": 5}
    # And it never goes back
    tailers.tailer("t").pause()
    with pytest.raises(InvalidRequest, match="never goes back"):
        await tailers.seek(Seek("t", 10, why="again"))
    with pytest.raises(InvalidRequest, match="never goes back"):
        await tailers.seek(Seek("t", 10, why="again", dry_run=True))
    assert only(tailers).state == "paused"


async def test_to_the_end_to_a_time_and_to_what_retention_left(stores, scheduler, tailers, eventually):
    # Given a tailer that never read
    tailers.tailer("t").pause()
    await fill(stores, 10)
    batch = await stores.log.read("s", 0, 0, 10, 1 << 20)
    await fill(stores, 10)
    later = (await stores.log.read("s", 0, 10, 10, 1 << 20)).times[0]
    assert later > batch.times[-1]
    [move] = await tailers.seek(Seek("t", time=later, dry_run=True))
    assert (move.before, move.after) == (0, 10)
    [move] = await tailers.seek(Seek("t", edge=START, why="from the start"))
    assert (move.after, move.dropped) == (0, 0)
    # When retention took what was not done
    await stores.log.trim("s", 0, 20)
    [end] = [bounds.end for bounds in (await stores.log.bounds("s")).values()]
    [start] = [bounds.start for bounds in (await stores.log.bounds("s")).values()]
    [move] = await tailers.seek(Seek("t", edge=START, why="they are gone"))
    assert (move.after, move.dropped) == (start, start)
    [move] = await tailers.seek(Seek("t", edge=END, why="skip the rest"))
    assert (move.after, only(tailers).state) == (end, "paused")
    beyond, unknown, other = Seek("t", end + 1), Seek("u", 5), Seek("t", 5, partition="9")
    for wrong, why in ((beyond, "ends at"), (unknown, "no tailer 'u'"), (other, "'9'")):
        with pytest.raises(InvalidRequest, match=why):
            await tailers.seek(wrong._replace(why="x"))
