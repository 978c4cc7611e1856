"""Tenants whose items wait for busy workers leave others a way to idle ones."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.lifecycle import cancel
from tailrace.model.demand import Closed
from tailrace.model.errors import Overloaded
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.workload import Kind, Outcomes
from tailrace.scheduler.calls import Calls
from tailrace.scheduler.core import Core
from tailrace.scheduler.crowding import REASON
from tailrace.scheduler.rules.closing import LOOK_AGAIN
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession
from tailrace.wire.v1 import scheduler_pb2 as pb

#: Functions of the busy pool, and the one of the idle pool.
BUSY = ("one", "two", "three", "four")


class Scene(NamedTuple):
    """A scheduler with a worker of two pools, of ten slots each, and a tailer."""

    core: Core
    worker: WorkerSession
    tailer: TailerSession


def scene(*pools: PoolLimits, **config: int) -> Scene:
    made = core(**config)
    worker = made.attach_worker("w", "w", 0.0)
    usual = [PoolLimits("busy", BUSY, 10, 10), PoolLimits("idle", ("quick",), 10, 10)]
    made.worker_connected(worker, [FunctionSpec(name) for name in (*BUSY, "quick")], pools or usual, 0.0)
    return Scene(made, worker, tailer_of(made))


def push(here: Scene, number: int, *kinds: Kind, now: float = 0.0) -> None:
    here.core.push(here.tailer, flight(number, *kinds), here.tailer.requests.send(now), 1000.0, now)
    here.core.turn(now, WALL)
    sent(here.core, here.worker, now)


def flood(here: Scene, tenants: tuple[str, ...] = ("acme",), collections: int = 1) -> int:
    """Takes all credit, in turns of tenants; returns it."""
    total = here.tailer.total
    kinds = [
        Kind(BUSY[each % 4], 2, f"c{each % collections}", tenants[each // 4 % len(tenants)]) for each in range(total)
    ]
    push(here, 1, *kinds)
    assert not here.tailer.ended
    return total


def ticks(here: Scene, *times: float) -> None:
    for now in times:
        here.core.tick(now, WALL)
        here.core.turn(now, WALL)
        sent(here.core, here.worker, now)


def closed(here: Scene) -> set[Closed]:
    return {cell for cell in here.tailer.closed if cell.reason == REASON}


@pytest.mark.parametrize("collections", [1, 60])
def test_who_waits_for_busy_workers_leaves_others_room(collections: int) -> None:
    # Given a tenant that has all credit of a session, for a pool that is busy
    here = scene()
    total = flood(here, collections=collections)
    running = here.core.running
    # When two ticks pass in which nothing is pushed
    ticks(here, 1.0, 2.0)
    # Then half of what waited went back, the newest, and its functions are closed to that tenant alone
    waiting = total - running
    assert len(here.tailer.ended) == waiting // 2
    assert min(here.tailer.ended) & 1023 >= total - waiting // 2
    assert {(each.function, each.tenant) for each in closed(here)} == {(name, "acme") for name in BUSY}
    assert not any(each.covers(Kind("one", 2, "", "beta")) for each in closed(here))
    # And another one's item is taken, and runs
    push(here, 2, Kind("quick", 2, "", "beta"), now=2.0)
    assert here.core.running == running + 1
    # And the first one's are open again after a while
    ticks(here, 2.0 + LOOK_AGAIN)
    assert not closed(here)


def test_what_was_kept_opens_its_tenant_when_half_of_it_has_started() -> None:
    here = scene()
    flood(here)
    ticks(here, 1.0, 2.0)
    assert closed(here)
    for now in (3.0, 4.0):
        here.core.report(here.worker, Outcomes(succeeded=[*here.worker.open][:10]), now, WALL)
        ticks(here, now)
    ticks(here, 5.0)
    assert not closed(here)


def test_each_of_several_keeps_the_same_and_those_without_a_tenant_are_one() -> None:
    here = scene()
    flood(here, ("acme", "beta", "none", ""))
    ticks(here, 1.0, 2.0)
    open_again = {each.tenant for each in closed(here)}
    assert open_again == {"acme", "beta", "none", ""}
    covered = [each for each in closed(here) if each.covers(Kind("one", 2, "x", ""))]
    assert [each.tenant for each in covered] == [""] and not covered[0].covers(Kind("one", 2, "x", "other"))


@pytest.mark.parametrize("why", ["no tenants", "all are busy", "it turns over"])
def test_nothing_goes_back(why: str) -> None:
    # Given no tenants, or no pool that idles, or credit that was used since the last tick
    here = scene(PoolLimits("busy", (*BUSY, "quick"), 10, 10)) if why == "all are busy" else scene()
    flood(here, ("",) if why == "no tenants" else ("acme",))
    ticks(here, 1.0)
    if why == "it turns over":
        here.core.report(here.worker, Outcomes(succeeded=[*here.worker.open][:4]), 1.5, WALL)
        push(here, 2, *[Kind("one", 2, "", "acme")] * 4, now=1.5)
    before = len(here.tailer.ended)
    # When another tick passes, then nothing is sent back or closed
    ticks(here, 2.0)
    assert (len(here.tailer.ended), closed(here)) == (before, set())


def test_tailers_of_one_tenant_leave_another_its_places_in_a_lane() -> None:
    # Given tailers of one tenant, each of which took what it might when it came, and one of another tenant
    here = scene(*[PoolLimits("busy", BUSY, 10, 10)], lane_items=64)
    others = [here, *[here._replace(tailer=tailer_of(here.core, session=f"t{each}")) for each in range(2)]]
    for each in others:
        push(each, 1, *[Kind("one", 2, "", "acme")] * 30)
    last = here._replace(tailer=tailer_of(here.core, session="last"))
    # When the other one's items come, beyond what the lane takes
    push(last, 1, *[Kind("one", 2, "", "beta")] * 20)
    # Then it is the first one's that go back, the newest
    assert not last.tailer.ended
    assert sum([len(each.tailer.ended) for each in others]) == 30 * 3 + 20 - here.core.running - 64


async def test_calls_of_one_tenant_leave_others_theirs() -> None:
    # Given a scheduler that takes eight calls, of which a tenant makes as many as it may
    made = core(calls=8)
    worker_of(made, limit=0)
    calls = Calls(made, SYSTEM_CLOCK, lambda: None)

    def call(tenant: str) -> asyncio.Task[pb.ExecuteReply]:
        return asyncio.create_task(calls.run(pb.ExecuteRequest(function="a", tenant=tenant)))

    out = [call("acme") for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match=r"the tenant 'acme' has about 4 of the 8 calls .*`calls`.*others"):
        await call("acme")
    # When others call, then there is room for them, and for the first one once a call of its own is over
    out += [call("beta"), call("")]
    await asyncio.sleep(0)
    await cancel(out.pop(0))
    await cancel(out.pop(0))
    out.append(call("acme"))
    await asyncio.sleep(0)
    assert not any(each.done() for each in out)
    for each in out:
        await cancel(each)
