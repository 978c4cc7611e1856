"""Replays: a part of a stream's past runs again as a run of its own; the live checkpoint is not touched."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from scenes.replays import EVERYTHING, LIVE, REPORTING, dead_of, fill, live_is_done, orders, over, payloads_of

from tailrace.model.drop import Cause
from tailrace.model.errors import InvalidRequest, Overloaded
from tailrace.model.lease import LeaseSizes
from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.replay import Bound, Only, Replay, ReplayState
from tailrace.model.seek import Seek
from tailrace.model.workload import Ended
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.replay.tailer import replay_config
from tailrace.tailers.supervisor import Tailers


async def test_a_range_runs_again_beside_the_live_tailer_whose_checkpoint_is_not_touched(
    stores, scheduler, tailers, eventually
):
    # Given a tailer that is done with 300 items
    before = await live_is_done(stores, scheduler, 300, eventually)
    row = await stores.ownership.read("t", "")
    # When somebody looks first, then nothing is begun
    order = EVERYTHING._replace(begin=Bound(100), end=Bound(250), who="ann@host", why="a bug")
    looked = await orders(stores).order(order._replace(dry_run=True))
    assert (looked.replay.number, looked.replay.items) == (0, 150)
    assert await orders(stores).list(9) == []
    # When it is begun
    begun = await orders(stores).order(order)
    found = await over(stores, begun.replay.number)
    # Then exactly those run, under a name and fences of their own, at the lowest priority, and who wanted it is known
    replay = found.replay
    assert (replay.name, replay.who, replay.why, replay.priority) == (
        f"t@replay-{replay.number}",
        "ann@host",
        "a bug",
        "reporting",
    )
    assert sorted(payloads_of(scheduler, replay.name)) == list(range(100, 250))
    kinds = {
        k
        for flight in scheduler.flights
        for k, i in zip(flight.kinds, flight.ids, strict=True)
        if i.startswith(replay.name)
    }
    assert {kind.priority for kind in kinds} == {REPORTING}
    assert (found.counts, found.ended) == ({"succeeded": 150}, 150)
    # And nothing of the live tailer's has changed
    after = (await stores.checkpoints.load("t"))["0"]
    assert after == before
    assert (await stores.ownership.read("t", "")).epoch == row.epoch
    assert await stores.drops.list("", 9) == []
    await fill(stores, 5)
    await eventually(lambda: tailers.overviews()[0].settled == 305)
    [audit] = await tailers.audits("t")
    assert audit.good


def test_its_file_is_that_of_the_live_tailer_but_for_name_priority_and_deadlines():
    live = TailerConfig.model_validate(LIVE | {"priority": "interactive", "expires": "1h"})
    replay = Replay(3, "t", ())
    config = replay_config(live, replay)
    assert (config.name, config.priority, config.expires) == ("t@replay-3", "reporting", None)
    same = config.model_copy(update={"name": "t", "priority": "interactive", "expires": live.expires})
    assert same == live
    assert replay_config(live, replace(replay, priority="")).priority == "interactive"


async def test_what_waits_for_a_retry_and_what_is_not_settled_stays_the_live_tailers(
    stores, scheduler, parking, tailers, eventually
):
    # Given a live tailer of which 7 and 9 wait in the delay service, and 40 is out
    def decide(flight, index):
        if flight.payloads[index] in (b"7", b"9") and flight.ids[index].startswith("t/"):
            return Ended(Outcome.RETRY)
        return None if flight.payloads[index] == b"40" else Ended(Outcome.SUCCESS)

    scheduler.decide = decide
    scheduler.allow("f")
    scheduler.allow("f", priority=REPORTING)
    await fill(stores, 50)
    async with asyncio.timeout(10):
        while (await stores.checkpoints.load("t")).get("0", (0,))[0] < 40:
            await asyncio.sleep(0.01)
    # When everything is asked for, it is everything below 40 but those two
    with pytest.raises(InvalidRequest, match="its checkpoint is at 40"):
        await orders(stores).order(EVERYTHING._replace(end=Bound(41)))
    begun = await orders(stores).order(EVERYTHING)
    [stretch] = begun.replay.stretches
    assert (stretch.items, stretch.waiting, stretch.end) == (38, 2, 40)
    found = await over(stores, begun.replay.number)
    assert sorted(payloads_of(scheduler, found.replay.name)) == [n for n in range(40) if n not in (7, 9)]
    assert found.counts == {"succeeded": 38}


async def test_what_fails_again_is_parked_under_the_name_of_the_replay_and_a_cancel_ends_it(
    stores, scheduler, parking, tailers, eventually
):
    # Given a replay of which one item fails for good and two are parked
    await live_is_done(stores, scheduler, 20, eventually)
    ends = {b"3": Ended(Outcome.RETRY), b"4": Ended(Outcome.RETRY), b"5": Ended(Outcome.FATAL, "no")}
    scheduler.decide = lambda flight, index: ends.get(flight.payloads[index], Ended(Outcome.SUCCESS))
    begun = await orders(stores).order(EVERYTHING)
    name, number = begun.replay.name, begun.replay.number
    found = await over(stores, number, ReplayState.RETRYING)
    assert found.counts == {"succeeded": 17, "delayed": 2, "dead": 1}
    assert [(item.tailer, item.position) for item in parking.items] == [(name, 3), (name, 4)]
    [letter] = await stores.dead_letters.list(dead_of(name), 9)
    assert (letter.position, letter.reason) == (5, "no")
    assert await stores.ledger.delayed("t") == {}
    # When it is asked for again, what still waits keeps others out
    with pytest.raises(InvalidRequest, match=f"the replay {number} is retrying"):
        await orders(stores).order(EVERYTHING)
    with pytest.raises(InvalidRequest, match="cannot become paused"):
        await orders(stores).change(number, "pause")
    # When it is cancelled, the retries are over by their rows
    await orders(stores).change(number, "cancel")
    found = await over(stores, number, ReplayState.CANCELLED)
    assert found.counts == {"succeeded": 17, "done after a delay": 2, "dead": 1}
    rows = [row.entry for row in await stores.ledger.list(name, 9)]
    assert [row for row in rows if row.place not in (LedgerPlace.DONE, LedgerPlace.DEAD)] == []
    # Then only what failed can be run again: here, in the live tailer nothing did
    with pytest.raises(InvalidRequest, match="there is no item to run"):
        await orders(stores).order(EVERYTHING._replace(only=Only.FAILED))


async def test_only_failed_dropped_or_unseen_by_what_the_audit_knows(stores, scheduler, tailers, eventually):
    # Given a live tailer with two dead letters, and a seek that passed ten items
    bad = (b"3", b"11")
    await live_is_done(
        stores, scheduler, 20, eventually,
        lambda flight, index: Ended(Outcome.FATAL if flight.payloads[index] in bad else Outcome.SUCCESS),
    )  # fmt: skip
    tailers.tailer("t").pause()
    await fill(stores, 20)
    await eventually(lambda: not tailers.tailer("t")._pump.busy)
    await tailers.seek(Seek("t", 30, who="ann", why="bad batch"))
    [drop] = await stores.drops.within("t", "0", 0, 99)
    assert (drop.first, drop.last, drop.cause) == (20, 29, Cause.SEEK)
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS)
    # Then each class is run by itself
    for only, wanted in ((Only.FAILED, [3, 11]), (Only.DROPPED, list(range(10)))):
        begun = await orders(stores).order(EVERYTHING._replace(only=only))
        assert begun.replay.items == len(wanted)
        found = await over(stores, begun.replay.number)
        assert sorted(payloads_of(scheduler, found.replay.name)) == wanted
        assert found.counts == {"succeeded": len(wanted)}
    with pytest.raises(InvalidRequest, match="there is no item to run"):
        await orders(stores).order(EVERYTHING._replace(only=Only.UNSEEN))


async def test_times_are_positions_where_the_source_has_them(stores, scheduler, tailers, eventually):
    await live_is_done(stores, scheduler, 10, eventually)
    await fill(stores, 10)
    await eventually(lambda: tailers.overviews()[0].settled == 20)
    later = (await stores.log.read("s", 0, 10, 1, 1 << 20)).times[0]
    async with asyncio.timeout(5):
        while (await stores.checkpoints.load("t"))["0"].position < 20:
            await asyncio.sleep(0.01)
    order = EVERYTHING._replace(begin=Bound(time=1.0), end=Bound(time=later), dry_run=True)
    [stretch] = (await orders(stores).order(order)).replay.stretches
    assert (stretch.first, stretch.end) == (0, 10)
    [stretch] = (await orders(stores).order(order._replace(end=Bound(time=later + 3600)))).replay.stretches
    assert (stretch.first, stretch.end) == (0, 20)


async def test_what_cannot_be_is_refused_with_what_to_do(stores, scheduler, parking, environment, make, eventually):
    queue = TailerConfig.model_validate({"name": "queue", "source": {"kind": "queue"}})
    folder = TailerConfig.model_validate({"name": "d", "source": {"kind": "directory", "path": "."}, "function": "f"})
    live = TailerConfig.model_validate(LIVE)
    tailers = Tailers(
        [live, queue, folder], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1),
        due=False, replays=stores.replays,
    )  # fmt: skip
    await tailers.start()
    try:
        await live_is_done(stores, scheduler, 50, eventually)
        await stores.log.trim("s", 0, 10)
        start = (await stores.log.bounds("s"))[0].start
        wrong = [
            (EVERYTHING._replace(tailer="u"), "no tailer 'u' took up the order"),
            (EVERYTHING._replace(tailer="queue"), "redrive dead letters instead"),
            (EVERYTHING._replace(only="lost"), "--only is 'lost'"),
            (EVERYTHING._replace(rate=-1.0), "--rate is -1"),
            (EVERYTHING._replace(priority="urgent"), "urgent"),
            (EVERYTHING._replace(partition="9"), "no partition '9'"),
            (EVERYTHING._replace(begin=Bound(40), end=Bound(30)), "behind --to"),
        ]
        if start:
            wrong.append((EVERYTHING._replace(begin=Bound(0)), "no records below"))
        for order, why in wrong:
            with pytest.raises(InvalidRequest, match=why):
                await orders(stores, answer_within=0.2 if order.tailer == "u" else 10.0).order(order)
        # A bound on how many read at once, and none of two runs an item of the other
        scheduler.allow("f", 0, priority=REPORTING)
        first = await orders(stores).order(EVERYTHING._replace(begin=Bound(20), end=Bound(30)))
        with pytest.raises(Overloaded, match="1 replays read"):
            await orders(stores, at_once=1).order(EVERYTHING._replace(begin=Bound(30)))
        with pytest.raises(InvalidRequest, match="runs some of these positions"):
            await orders(stores).order(EVERYTHING._replace(begin=Bound(29)))
        with pytest.raises(InvalidRequest, match="no change of a replay"):
            await orders(stores).change(first.replay.number, "stop")
        await orders(stores).change(first.replay.number, "cancel")
        assert (await over(stores, first.replay.number, ReplayState.CANCELLED)).counts == {}
    finally:
        await tailers.stop()
