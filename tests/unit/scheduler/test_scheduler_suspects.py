"""Lost items in the core: suspects have places of their own, and what had its turn goes first."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.lease import LeaseSizes
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Extra, Flight, Kind, Outcomes, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession
from tailrace.scheduler.view import explain, inspect

SIZES = LeaseSizes()
WALL = 1000.0
F = Kind("f")
SUSPECT = Extra(crashes=1, alone=True)
LOST = Extra(again=True)


class World:
    """One core and one tailer; each worker has room for four items and for one that must run alone."""

    def __init__(self, *workers: str, apart: bool = True) -> None:
        self.core = Core(SchedulerConfig(), SIZES, ready=True)
        self.apart = apart
        self.workers = {name: self.worker(name) for name in workers}
        self.tailer: TailerSession = self.core.attach_tailer("t", "t", 0.0)
        self.core.tailer_connected(self.tailer)
        self.numbers = 0

    def worker(self, name: str) -> WorkerSession:
        worker = self.core.attach_worker(name, name, 0.0)
        pools = [PoolLimits("default", ("f",), 4, 4)]
        if self.apart:
            pools.append(PoolLimits("default (alone)", ("f",), 1, 1, alone=True))
        self.core.worker_connected(worker, [FunctionSpec("f")], pools, 0.0)
        return worker

    def push(self, count: int, extra: Extra | None = None) -> list[str]:
        self.numbers += 1
        ids = [f"{self.numbers}/{index}" for index in range(count)]
        extras = dict.fromkeys(range(count), extra) if extra is not None else {}
        flight = Flight(self.numbers, self.numbers, [F] * count, ids, [b""] * count, [1] * count, extras)
        self.core.push(self.tailer, flight, 0, SIZES.scheduler, 0.0)
        return ids

    def started(self, worker: str) -> dict[str, str]:
        """Pool of each item that a worker is sent now, by id."""
        self.core.turn(0.0, WALL)
        found = {}
        while (made := self.core.assignment(self.workers[worker], 0.0)) is not None:
            found |= {item[2]: made[0].pool.name for item in made[0].items}
        return found

    def succeed(self, worker: str, count: int, pool: str = "default") -> None:
        """Lets so many items of a pool end well."""
        there = self.workers[worker]
        refs = [each for each in there.open if there.flights[each >> 10].pool.name == pool][:count]
        assert len(refs) == count
        self.core.report(there, Outcomes(refs, {}), 0.0, WALL)


def test_suspects_that_wait_for_their_process_keep_nobody_else_waiting() -> None:
    # Given more suspects than a worker can run
    world = World("w")
    suspects = world.push(10, SUSPECT)
    assert world.started("w") == {suspects[0]: "default (alone)"}
    # When others come, then they have the whole worker
    others = world.push(4)
    assert world.started("w") == dict.fromkeys(others, "default")
    # And the next suspect goes when the first has ended, however full the worker is
    world.push(10)
    assert world.started("w") == {}
    assert explain(world.core, suspects[1], 0.0, WALL).reason == "workers_full"
    world.succeed("w", 1, "default (alone)")
    assert world.started("w") == {suspects[1]: "default (alone)"}


def test_suspects_are_spread_over_the_workers() -> None:
    world = World("v", "w")
    suspects = world.push(10, SUSPECT)
    world.core.turn(0.0, WALL)
    assert len(world.started("v")) == len(world.started("w")) == 1
    [lane] = inspect(world.core, "s", 0.0).lanes
    assert (lane.waiting, lane.running) == (len(suspects) - 2, 2)


def test_a_worker_without_places_for_suspects_gets_them_with_all_others() -> None:
    world = World("w", apart=False)
    suspects = world.push(2, SUSPECT)
    assert world.started("w") == dict.fromkeys(suspects, "default")


def test_suspects_are_under_the_limits_of_their_function() -> None:
    world = World("v", "w")
    world.core.apply([], [Quota("f", 3)], [], 1, 0.0)
    world.push(2, SUSPECT)
    world.push(5)
    both = world.started("v") | world.started("w")
    assert len(both) == 3
    [worker] = [name for name, there in world.workers.items() if there.open][:1]
    kind = next(iter(world.workers[worker].flights.values())).pool.name
    world.succeed(worker, 1, kind)
    assert len(world.started("v") | world.started("w")) == 1


def test_suspects_meet_gates_and_go_back_when_their_workers_have_gone() -> None:
    world = World("w")
    paused = world.push(3, SUSPECT)
    world.core.apply([Gate("f", "", "pause")], [], [], 1, 0.0)
    assert [end.outcome for end in world.tailer.ended.values()] == [Outcome.HELD] * len(paused)
    world.tailer.ended.clear()
    world.core.apply([], [], [], 2, 0.0)
    world.push(3, SUSPECT)
    world.core.worker_away(world.workers["w"], 0.0)
    world.core.tick(SIZES.heartbeat * 2, WALL)
    assert len(world.tailer.ended) == 3


def test_what_was_assigned_and_never_sent_is_a_suspect_still() -> None:
    world = World("v", "w")
    suspects = world.push(1, SUSPECT)
    world.core.turn(0.0, WALL)
    [first] = [name for name, there in world.workers.items() if there.open]
    world.core.worker_away(world.workers[first], 0.0)
    [second] = {"v", "w"} - {first}
    assert world.started(second) == {suspects[0]: "default (alone)"}


def test_what_was_lost_goes_before_what_waits() -> None:
    # Given a full worker, and more that waits
    world = World("w")
    world.push(4)
    world.started("w")
    waiting = world.push(6)
    # When something comes again that was out before
    lost = world.push(2, LOST)
    # Then it starts first, in its order
    world.succeed("w", 3)
    assert list(world.started("w")) == [*lost, waiting[0]]


def test_suspects_that_were_lost_go_before_other_suspects() -> None:
    world = World("w")
    world.push(3, SUSPECT)
    world.started("w")
    lost = world.push(1, Extra(crashes=1, alone=True, again=True))
    world.succeed("w", 1, "default (alone)")
    assert world.started("w") == {lost[0]: "default (alone)"}
    assert ref(1, 0) in world.tailer.succeeded


def test_what_loses_its_whole_worker_again_is_suspected_and_what_only_waited_for_others_is_not() -> None:
    # Given a worker with items of which one is out for the first time, two were lost before, one is a suspect, and one
    # of those that were lost waits for other work
    world = World("w")
    [new], [lost], [parent], [suspect] = (world.push(1, extra) for extra in (None, LOST, LOST, SUSPECT))
    assert set(world.started("w")) == {new, lost, parent, suspect}
    worker = world.workers["w"]
    [waits] = [each for each, item in worker.open.items() if item[2] == parent]
    world.core.returns.wait(worker, [waits])
    # When the worker is gone whole, as with its host, or killed with all of its processes
    world.core.forget_worker(worker, 0.0)
    # Then all of them are lost, and those that may be why have a crash counted
    ends = world.tailer.ended
    assert {end.outcome for end in ends.values()} == {Outcome.LOST}
    assert [ends[ref(flight, 0)].crashed for flight in (1, 2, 3, 4)] == [False, True, False, True]
    assert {end.reason.partition(":")[0] for end in ends.values()} == {"worker_lost"}
