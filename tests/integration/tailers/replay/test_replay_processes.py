"""A replay outlives its processes: it stays paused, goes on where it was, elsewhere too, and leaves nothing."""

from __future__ import annotations

import pytest
from scenes.replays import EVERYTHING, forgotten, live_is_done, orders, over, payloads_of

from tailrace.model.errors import InvalidRequest, Unavailable
from tailrace.model.replay import ReplayState, asked_for


async def test_a_replay_that_is_paused_stays_so_and_goes_on_after_a_restart_where_it_was(
    stores, scheduler, make, eventually
):
    # Given a replay at twenty a second that was paused on its way
    tailers = make()
    await tailers.start()
    await live_is_done(stores, scheduler, 30, eventually)
    begun = await orders(stores).order(EVERYTHING._replace(rate=20.0))
    name, number = begun.replay.name, begun.replay.number
    await eventually(lambda: len(payloads_of(scheduler, name)) >= 5)
    assert (await orders(stores).change(number, "pause")).replay.state is ReplayState.PAUSED
    await eventually(lambda: not tailers.replays.tailer(name).busy)
    ran = len(payloads_of(scheduler, name))
    assert ran < 30
    await tailers.drain(5)
    await tailers.stop()
    # When its process starts again
    again = make()
    await again.start()
    try:
        await eventually(lambda: again.replays.tailer(name) is not None)
        with pytest.raises(InvalidRequest, match="is a replay"):
            again.check(name)
        assert (await orders(stores).get(number)).replay.state is ReplayState.PAUSED
        await orders(stores).change(number, "resume")
        found = await over(stores, number)
        # Then each of its items ran once
        assert sorted(payloads_of(scheduler, name)) == list(range(30))
        assert found.counts == {"succeeded": 30}
        assert [each.replay.number for each in await orders(stores).list(9)] == [number]
    finally:
        await again.stop()


async def test_a_replay_whose_process_died_as_it_ended_leaves_no_checkpoint(
    stores, scheduler, make, eventually, monkeypatch
):
    # Given a replay that is done, whose process died before it forgot its checkpoint
    async def die(source):
        raise Unavailable("the process is gone")

    tailers = make()
    await tailers.start()
    await live_is_done(stores, scheduler, 10, eventually)
    with monkeypatch.context() as patch:
        patch.setattr(stores.checkpoints, "forget", die)
        begun = await orders(stores).order(EVERYTHING)
        await over(stores, begun.replay.number)
        await tailers.stop()
    assert await stores.checkpoints.load(begun.replay.name)
    # When it starts again, it is forgotten
    again = make()
    await again.start()
    try:
        await forgotten(stores, begun.replay.name)
        assert (await orders(stores).get(begun.replay.number)).counts == {"succeeded": 10}
    finally:
        await again.stop()


async def test_of_two_processes_one_reads_a_replay_and_the_other_goes_on_when_it_dies(
    stores, scheduler, make, eventually
):
    # Given two processes that run the tailer
    one, other = make(), make()
    await one.start()
    await live_is_done(stores, scheduler, 60, eventually)
    await other.start()
    try:
        # When somebody wants a replay, whose last items run until they are let go, one of them reads it and the other
        # stands by
        held = True
        ended = scheduler.decide
        scheduler.decide = lambda flight, index: (
            None if held and int(flight.payloads[index]) >= 30 else ended(flight, index)
        )
        begun = await orders(stores).order(EVERYTHING._replace(rate=100.0))
        name = begun.replay.name
        await eventually(lambda: all(each.replays.tailer(name) is not None for each in (one, other)))
        await eventually(lambda: len(payloads_of(scheduler, name)) >= 5)
        reading, waiting = (one, other) if one.replays.tailer(name).owns else (other, one)
        assert not waiting.replays.tailer(name).owns
        assert not waiting.replays.detail(begun.replay)
        assert "read by the process" in (await orders(stores).get(begun.replay.number)).detail
        assert name in [each.name for each in reading.overviews()]
        [told] = await orders(stores).overviews()
        assert (told.name, told.tailer, told.state, told.items) == (name, "t", "running", 60)
        # And when the first one dies, the other goes on
        await reading.stop()
        held = False
        found = await over(stores, begun.replay.number)
        assert set(payloads_of(scheduler, name)) == set(range(60))
        assert found.counts == {"succeeded": 60}
        # And nothing of it is left
        await eventually(lambda: waiting.replays.tailer(name) is None)
        await forgotten(stores, name)
    finally:
        await one.stop()
        await other.stop()


async def test_a_replay_that_nobody_reads_says_so_and_can_be_cancelled_by_any_process(
    stores, scheduler, make, eventually
):
    # Given a replay at ten a second whose process is gone
    tailers = make()
    await tailers.start()
    await live_is_done(stores, scheduler, 30, eventually)
    begun = await orders(stores).order(EVERYTHING._replace(rate=10.0))
    name, number = begun.replay.name, begun.replay.number
    await eventually(lambda: len(payloads_of(scheduler, name)) >= 2)
    await tailers.drain(5)
    await tailers.stop()
    assert "none runs a tailer 't' now" in (await orders(stores).get(number)).detail
    # When it is cancelled, a process that has no such tailer ends it
    await orders(stores).change(number, "cancel")
    stranger = make(name="u")
    await stranger.start()
    try:
        found = await over(stores, number, ReplayState.CANCELLED)
        assert set(found.counts) == {"succeeded"} and found.counts["succeeded"] < 30
        # And an order that nobody took up in its time is not begun later
        late = asked_for(EVERYTHING._replace(tailer="u"), 0.0)
        number = (await stores.replays.add(late)).number
        found = await over(stores, number, ReplayState.REFUSED)
        assert "ask again" in found.detail
        number = (await stores.replays.add(asked_for(EVERYTHING, 0.0))).number
        assert (await orders(stores).get(number)).replay.state is ReplayState.ASKED
        assert (await orders(stores).change(number, "cancel")).replay.state is ReplayState.CANCELLED
    finally:
        await stranger.stop()
