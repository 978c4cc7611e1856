"""Takeover of a stream: the ownership row of a tailer, against rivals that live, die, and leave."""

import asyncio
from dataclasses import replace

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import Unavailable
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer
from tailrace.tailers.takeover.epoch import LOOKS, Epoch

LOG = {"kind": "log", "stream": "s"}
SUCCESS = Ended(Outcome.SUCCESS)
SIZES = LeaseSizes.of_heartbeat(0.1)


async def fill(stores, count, start=0):
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(start, start + count)])


async def settled(eventually, tailer, count):
    await eventually(lambda: tailer.overview().settled == count)


class Watched:
    """An ownership store that notes its calls, and can be away."""

    def __init__(self, store):
        self.store = store
        self.log = []
        self.away = False

    async def _ask(self, name, *arguments):
        if self.away:
            raise Unavailable("the store is away")
        self.log.append((name, *arguments))
        return await getattr(self.store, name)(*arguments)

    def __getattr__(self, name):
        return lambda *arguments: self._ask(name, *arguments)


@pytest.fixture
async def start_watched(environment, scheduler, parking):
    """Starts a tailer whose ownership store is watched."""
    watched = Watched(environment.ownership)
    config = TailerConfig.model_validate({"name": "t", "source": LOG, "function": "f"})
    tailer = Tailer(config, Resources(replace(environment, ownership=watched), scheduler.address, parking, SIZES))

    async def start():
        await tailer.start()
        return tailer, watched

    yield start
    await tailer.stop()


async def test_an_owner_that_died_is_waited_for_and_its_epoch_ends(stores, scheduler, start, eventually):
    ghost = await stores.ownership.take("t", "", "ghost", SIZES.source, 0)
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: "previous owner, ghost" in tailer.overview().detail)
    assert tailer.overview().state == "starting" and not scheduler.flights
    await settled(eventually, tailer, 3)
    row = await stores.ownership.read("t", "")
    assert row.epoch > ghost.epoch and row.holder != "ghost"
    assert scheduler.flights[0].fence > row.epoch << 32


async def test_an_owner_that_lives_is_never_taken_from_and_one_that_leaves_is_followed_at_once(
    stores, scheduler, start_watched, eventually
):
    """Given an owner that renews for longer than two leases, then another one only looks; when the owner leaves, the
    other takes over without waiting for a lease."""
    ghost = await stores.ownership.take("t", "", "ghost", SIZES.source, 0)
    scheduler.allow("f")
    await fill(stores, 3)
    tailer, watched = await start_watched()
    looks = 2 * LOOKS * SIZES.source / SIZES.heartbeat
    while len(watched.log) < looks:
        seen = len(watched.log)
        await eventually(lambda seen=seen: len(watched.log) > seen + LOOKS)
        await stores.ownership.renew("t", "", ghost.epoch, [])
    assert {name for name, *_ in watched.log} == {"read"} and not scheduler.flights
    assert tailer.overview().detail == "standing by for ghost, which has the source"
    await stores.ownership.release("t", "", ghost.epoch)
    looks = len(watched.log)
    await settled(eventually, tailer, 3)
    assert [name for name, *_ in watched.log[looks:]].index("take") <= LOOKS


async def test_the_row_names_a_scheduler_before_the_first_push_to_it(stores, scheduler, start_watched, eventually):
    tailer, watched = await start_watched()
    scheduler.decide = lambda flight, index: watched.log.append(("push",)) or SUCCESS
    scheduler.allow("f")
    await fill(stores, 1)
    await settled(eventually, tailer, 1)
    pushed = watched.log.index(("push",))
    assert any(entry[0] == "renew" and entry[4] == ("fake",) for entry in watched.log[:pushed])


async def test_the_version_rises_when_a_session_opens_again(stores, scheduler, start_watched, eventually):
    tailer, watched = await start_watched()
    scheduler.allow("f")
    await eventually(lambda: tailer.overview().state == "running")
    await eventually(lambda: any(entry[0] == "renew" for entry in watched.log))
    before = (await stores.ownership.read("t", "")).version
    await scheduler.stop()
    await scheduler.start(scheduler.address)
    async with asyncio.timeout(10):
        while (await stores.ownership.read("t", "")).version <= before:
            await asyncio.sleep(0.005)


class Late:
    """An ownership store of which one renewal is not answered, and comes later than those after it."""

    def __init__(self, store):
        self.store = store
        self.loses = False
        self.lost = None

    async def renew(self, *arguments):
        if self.loses:
            self.loses, self.lost = False, arguments
            raise Unavailable("the connection broke")
        return await self.store.renew(*arguments)

    def __getattr__(self, name):
        return getattr(self.store, name)


@pytest.mark.parametrize("comes", ["first", "late"])
async def test_a_renewal_without_an_answer_takes_no_scheduler_off_the_row(stores, comes):
    # Given an owner that pushes to one scheduler, and a renewal of its that is not answered
    late = Late(stores.ownership)
    epoch = Epoch(late, stores.checkpoints, "t", LeaseSizes(), SYSTEM_CLOCK, lambda: None)
    await epoch.take()
    epoch.joined("one")
    late.loses = True
    renewing = asyncio.create_task(epoch.renew())
    while late.lost is None:
        await asyncio.sleep(0)
    # When it comes before the one that follows, or a moment after another scheduler was named
    if comes == "first":
        await stores.ownership.renew(*late.lost)
    await renewing
    epoch.joined("two")
    await epoch.renew()
    assert epoch.may_push_to("two")
    if comes == "late":
        assert await stores.ownership.renew(*late.lost) is None
    # Then the row names whom anything was pushed to, and it can be renewed further
    await epoch.renew()
    row = await stores.ownership.read("t", "")
    assert (row.schedulers, row.version) == (("one", "two"), epoch.version)


async def test_a_stale_owner_is_refused_and_stands_by(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await fill(stores, 3)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 3)
    taken = None
    while taken is None:  # between two of its renewals
        row = await stores.ownership.read("t", "")
        taken = await stores.ownership.take("t", "", "rival", SIZES.source, row.version)
    await eventually(lambda: tailer.overview().stale_writes == 1)
    await eventually(lambda: "previous owner, rival" in tailer.overview().detail)
    await stores.ownership.release("t", "", taken.epoch)
    await fill(stores, 2, start=3)
    await settled(eventually, tailer, 5)
    assert scheduler.ids == [f"t/0/{n}" for n in range(5)]


async def test_an_epoch_that_was_not_renewed_for_a_lease_is_not_resumed(stores, scheduler, start_watched, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await fill(stores, 1)
    tailer, watched = await start_watched()
    await eventually(lambda: len(scheduler.ids) == 1)
    first = await stores.ownership.read("t", "")
    watched.away = True
    pump = tailer._pump
    await eventually(lambda: pump.held_for(0) == 0)
    watched.away = False
    scheduler.decide = lambda flight, index: SUCCESS
    await settled(eventually, tailer, 1)
    assert (await stores.ownership.read("t", "")).epoch > first.epoch
    assert scheduler.flights[-1].fence > (first.epoch + 1) << 32


async def test_a_clean_stop_leaves_the_row_empty_and_one_with_work_out_does_not(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await fill(stores, 1)
    tailer = await start(source=LOG, function="f")
    await settled(eventually, tailer, 1)
    await tailer.stop()
    assert (await stores.ownership.read("t", "")).holder == ""
    scheduler.decide = lambda flight, index: None
    await fill(stores, 1, start=1)
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: len(scheduler.ids) == 2)
    await tailer.stop()
    assert (await stores.ownership.read("t", "")).holder != ""
