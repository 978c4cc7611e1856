"""Never drop: nothing is passed without somebody's word, and nothing before that is durable."""

from tailrace.model.drop import Cause, Drop
from tailrace.model.errors import Unavailable
from tailrace.model.outcome import Outcome
from tailrace.model.workload import DroppedBy, Ended
from tailrace.stores.log.log import Record

LOG = {"kind": "log", "stream": "s"}
SUCCESS = Ended(Outcome.SUCCESS)
BY_ANN = DroppedBy(7, "ann", "flood")


async def fill(stores, count):
    for _ in range(count):  # batches of their own, since a trim forgets whole batches
        await stores.log.append("s", 0, [Record(b"x")])


async def position(stores):
    marks = await stores.checkpoints.load("t")
    return marks["0"].position if "0" in marks else 0


async def drops(stores):
    return [row.drop._replace(at=0.0) for row in await stores.drops.list("t", 100)]


async def test_what_a_gate_drops_is_noted_before_the_frontier_passes(stores, scheduler, start, eventually, monkeypatch):
    # Given a gate that drops some items, and a store of drops that is away
    add, away = stores.drops.add, [True]

    async def adding(*note):
        if away[0]:
            raise Unavailable("the store of drops is away")
        await add(*note)

    monkeypatch.setattr(stores.drops, "add", adding)
    scheduler.decide = lambda flight, index: (
        Ended(Outcome.DROPPED, "dropped: by ann", dropped_by=BY_ANN) if 3 <= index <= 6 else SUCCESS
    )
    scheduler.allow("f")
    await fill(stores, 10)
    tailer = await start(source=LOG, function="f")
    # When it cannot be noted, then the checkpoint stays before it
    await eventually(lambda: tailer.overview().settled == 6)
    await eventually(lambda: "the store of drops is away" in tailer.overview().detail)
    assert await position(stores) <= 3
    # And once it is noted, with who and why, the checkpoint goes on
    away[0] = False
    await eventually(lambda: (tailer.overview().dropped, tailer.overview().settled) == (4, 10))
    await tailer.drain(5)
    await tailer.stop()
    assert await position(stores) == 10
    assert await drops(stores) == [Drop(3, 6, 4, Cause.GATE, 7, "ann", "flood")]


async def test_a_restart_notes_a_dropped_item_once(stores, scheduler, start, eventually):
    held = {0}
    scheduler.decide = lambda flight, index: (
        None if int(flight.ids[index].rsplit("/")[-1]) in held else Ended(Outcome.DROPPED, "gate", dropped_by=BY_ANN)
    )
    scheduler.allow("f")
    await fill(stores, 5)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().dropped == 4)
    await tailer.stop()
    held.clear()
    again = await start(source=LOG, function="f")
    await eventually(lambda: again.overview().dropped >= 1, 30)
    assert await drops(stores) == [Drop(0, 4, 5, Cause.GATE, 7, "ann", "flood")]


async def test_where_retention_passed_the_checkpoint_the_tailer_stops_and_says_what_to_do(
    stores, scheduler, start, eventually
):
    # Given a tailer that stopped at 3, and records forgotten up to 6
    scheduler.decide = lambda flight, index: SUCCESS
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().settled == 3)
    await tailer.drain(5)
    await tailer.stop()
    await fill(stores, 5)
    await stores.log.trim("s", 0, 6)
    # When it comes back, then it stops where it is
    stopped = await start(source=LOG, function="f")
    await eventually(lambda: stopped.overview().state == "failed")
    detail = stopped.overview().detail
    assert "positions 3 to 5 of partition 0 are gone" in detail and "allow_loss: [retention]" in detail
    assert await position(stores) == 3 and await drops(stores) == []
    await stopped.stop()
    # And when its file allows that, then it goes on behind them, and what was lost is noted
    allowed = await start(source=LOG, function="f", allow_loss=["retention"])
    await eventually(lambda: allowed.overview().settled == 2)
    assert allowed.overview().lost == 3
    [lost] = await drops(stores)
    assert (lost.first, lost.last, lost.items, lost.cause, lost.who) == (3, 5, 3, Cause.RETENTION, "allow_loss")
    await allowed.drain(5)
    await allowed.stop()
    assert await position(stores) == 8


async def test_what_an_earlier_run_had_settled_was_not_lost(stores, scheduler, start, eventually):
    # Given a checkpoint that holds 0 open and has 1 to 4 settled above it
    scheduler.decide = lambda flight, index: None if index == 0 else SUCCESS
    scheduler.allow("f")
    await fill(stores, 5)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().settled == 4)
    mark = {}

    async def ahead():
        mark.update(await stores.checkpoints.load("t"))
        return bool(mark and mark["0"].ahead)

    while not await ahead():
        await eventually(lambda: True)
    await tailer.stop()
    await fill(stores, 1)
    await stores.log.trim("s", 0, 5)
    scheduler.decide = lambda flight, index: SUCCESS
    again = await start(source=LOG, function="f", allow_loss=["retention"])
    await eventually(lambda: again.overview().settled == 1, 30)
    assert [(drop.first, drop.last) for drop in await drops(stores)] == [(0, 0)]


async def test_held_items_that_retention_took_stop_the_tailer(stores, scheduler, start, eventually):
    # Given items held by position without their payload
    scheduler.decide = lambda flight, index: Ended(Outcome.THROTTLED, after=0.3)
    scheduler.allow("f")
    await fill(stores, 8)
    tailer = await start(source=LOG, function="f", window={"items": 4})
    await eventually(lambda: tailer.overview().held > 2)
    # When the log forgets them
    await stores.log.trim("s", 0, 8)
    # Then the tailer stops rather than pass them
    await eventually(lambda: tailer.overview().state == "failed")
    assert "retention" in tailer.overview().detail
    assert await position(stores) == 0
