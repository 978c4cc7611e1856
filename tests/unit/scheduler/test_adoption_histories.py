"""Adoption in the core, in random histories: owners come, die and are adopted from in any order."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scenes.adoption_bench import ROW, WALL, Bench, refs

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Outcomes, ref
from tailrace.scheduler.sessions import Adoption, TailerSession, WorkerSession


class Takeovers(RuleBasedStateMachine):
    """Owners come, push, lose connections, die, are adopted from; the worker ends items. The row's compare-and-set is
    played here. No position ever runs twice, and each told owner hears the end of what it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(limit=6)
        self.version = self.epoch = 0
        self.owner: TailerSession | None = None
        self.asked: dict[TailerSession, tuple[int, Adoption]] = {}
        self.sessions = self.flights = self.positions = 0
        self.running: dict[int, int] = {}  # the worker's ref → position
        self.waits_for: dict[TailerSession, dict[int, int]] = {}  # an owner's ref → position
        self.handed: Counter[int] = Counter()

    @initialize()
    def begin(self) -> None:
        self.take(self.new(), {})

    def new(self) -> TailerSession:
        self.sessions += 1
        return self.bench.session(f"s{self.sessions}")

    def take(self, tailer: TailerSession, adopted: dict[int, int]) -> None:
        self.version += 2
        self.epoch += 1
        self.owner = tailer
        self.waits_for[tailer] = adopted
        self.asked.clear()
        self.bench.core.adoptions.show(tailer, ROW, self.epoch, self.version)

    @rule(items=st.integers(1, 4))
    def push(self, items: int) -> None:
        tailer = self.owner
        if tailer is not None and tailer.connected and tailer.session in self.bench.core.tailers:
            self.flights += 1
            places = list(range(self.positions, self.positions + items))
            self.positions += items
            self.waits_for[tailer].update({ref(self.flights, index): place for index, place in enumerate(places)})
            self.bench.push(tailer, self.flights, self.epoch, places)

    @rule()
    def assign(self) -> None:
        for number, place in self.bench.sent().items():
            self.running[number] = place
            self.handed[place] += 1

    @rule(data=st.data(), outcome=st.sampled_from([Outcome.SUCCESS, Outcome.RETRY, Outcome.HELD]))
    @precondition(lambda self: self.running)
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        number = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[number]
        ended = {} if outcome == Outcome.SUCCESS else {number: Ended(outcome)}
        self.bench.end(Outcomes([] if ended else [number], ended))
        self.bench.core.turn(self.bench.now, WALL)

    @rule(data=st.data(), waits=st.booleans())
    @precondition(lambda self: self.running)
    def wait(self, data: st.DataObject, waits: bool) -> None:
        """Has a run wait for other work, or go on, whichever owner has it by then."""
        some = [data.draw(st.sampled_from(sorted(self.running)))]
        self.bench.core.waits(self.bench.worker, some if waits else [], [] if waits else some, self.bench.now)
        self.bench.core.turn(self.bench.now, WALL)

    @rule()
    @precondition(lambda self: self.owner is not None)
    def cut(self) -> None:
        assert self.owner is not None
        if self.owner.connected:
            self.bench.die(self.owner)

    @rule()
    @precondition(lambda self: self.owner is not None and not self.owner.connected)
    def reopen(self) -> None:
        """Opens the owner's session again, which raises the version and spoils what others asked."""
        assert self.owner is not None
        if self.owner.session in self.bench.core.tailers:
            self.version += 1
            self.bench.core.tailer_connected(self.owner)
            self.bench.core.adoptions.show(self.owner, ROW, self.epoch, self.version)

    @rule()
    def ask(self) -> None:
        tailer = self.new()
        answer = self.bench.ask(tailer, self.epoch, self.version)
        assert bool(answer.refused) == (self.owner is not None and self.owner.connected)
        if not answer.refused:
            self.asked[tailer] = (self.version, answer)

    @rule(data=st.data())
    @precondition(lambda self: self.asked)
    def adopt(self, data: st.DataObject) -> None:
        tailer = data.draw(st.sampled_from(sorted(self.asked, key=lambda each: each.session)))
        version, answer = self.asked[tailer]
        if version == self.version:
            self.take(tailer, {number: place for place, number in refs(answer).items()})

    @rule()
    @precondition(lambda self: self.owner is not None and self.owner.connected)
    def hear(self) -> None:
        tailer = self.owner
        assert tailer is not None
        waiting = self.waits_for[tailer]
        for number in [*tailer.succeeded, *tailer.ended]:
            assert waiting.pop(number, None) is not None, "an end that nobody waits for"
        tailer.succeeded, tailer.ended = [], {}

    @invariant()
    def nothing_is_handed_out_twice(self) -> None:
        assert all(times == 1 for times in self.handed.values())
        assert self.bench.worker.open.keys() >= self.running.keys()

    @invariant()
    def the_owner_still_waits_for_what_runs(self) -> None:
        """An owner, as long as it is one, has everything that runs or waits, and will be told of it."""
        tailer = self.owner
        if tailer is not None and tailer.connected and tailer.session in self.bench.core.tailers:
            here = {item[1] for item in self.bench.worker.open.values() if item[0] is tailer}
            here |= {
                item[1]
                for function in self.bench.core.roster.functions.values()
                for lane in function.all_flows
                for item in lane.items
                if item[0] is tailer
            }
            here |= {*tailer.succeeded, *tailer.ended}
            assert here == self.waits_for[tailer].keys()
            assert tailer.held.items == sum(lease.open for lease in tailer.held.flights.values())

    @invariant()
    def what_waits_takes_no_room_and_all_else_does(self) -> None:
        worker: WorkerSession = self.bench.worker
        (pool,) = worker.pools.values()
        assert worker.parents <= worker.open.keys()
        assert (pool.parents, pool.assigned) == (len(worker.parents), len(worker.open) - len(worker.parents))

    @invariant()
    def a_worker_knows_whose_items_it_has(self) -> None:
        worker: WorkerSession = self.bench.worker
        for number, flight in worker.flights.items():
            sessions = {item[0] for each, item in worker.open.items() if each >> 10 == number}
            assert set(flight.tailers) >= sessions


TestTakeovers = Takeovers.TestCase
TestTakeovers.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
