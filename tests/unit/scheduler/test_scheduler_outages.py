"""The core in an outage: what goes back, what may run, and what a session hears first."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Extra, Flight, Kind, Outcomes, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.clog import Clog, ClogLimits
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession
from tailrace.scheduler.view import explain, inspect

SIZES = LeaseSizes()
WALL = 1000.0
BROKEN = Ended(Outcome.RETRY, "no database\n  at shop.py:11 in charge")
DIED = Ended(Outcome.LOST, "signal 11", crashed=True)
F, G = Kind("f"), Kind("g")


class World:
    """One core with one worker; time stands still unless a test moves it."""

    def __init__(self, limit: int = 50) -> None:
        self.now = 0.0
        self.core = Core(SchedulerConfig(), SIZES, ready=True)
        self.worker: WorkerSession = self.core.attach_worker("w", "w", 0.0)
        specs = [FunctionSpec("f"), FunctionSpec("g")]
        self.core.worker_connected(self.worker, specs, [PoolLimits("default", ("f", "g"), limit, limit)], 0.0)
        self.numbers = 0

    def tailer(self, name: str, *, through: bool = False, patient: bool = False) -> TailerSession:
        tailer = self.core.attach_tailer(name, name, self.now, through_outages=through, patient=patient)
        self.core.tailer_connected(tailer)
        return tailer

    def push(self, tailer: TailerSession, *kinds: Kind, attempt: int = 1, key: str = "", crashes: int = 0) -> list[int]:
        self.numbers += 1
        number, count = self.numbers, len(kinds)
        extra = Extra(key=key, crashes=crashes, alone=crashes > 0)
        extras = dict.fromkeys(range(count), extra) if key or crashes else {}
        ids = [f"{tailer.name}/{number}-{index}" for index in range(count)]
        flight = Flight(number, number, list(kinds), ids, [b""] * count, [attempt] * count, extras)
        self.core.push(tailer, flight, tailer.requests.send(self.now), SIZES.scheduler, self.now)
        return [ref(number, index) for index in range(count)]

    def started(self) -> list[int]:
        """Refs of the items that the worker is sent now."""
        for tailer in self.core.tailers.values():
            number = tailer.requests.send(self.now)
            self.core.granted(tailer, number, SIZES.scheduler, list(tailer.held.flights))
        self.core.lease_requested(self.worker, self.worker.granted.number + 1, self.now)
        self.core.turn(self.now, WALL)
        found = []
        while (made := self.core.assignment(self.worker, self.now)) is not None:
            found += [ref(made[0].flight, index) for index in range(len(made[0].items))]
        return found

    def fail(self, refs: list[int], end: Ended = BROKEN) -> None:
        self.core.report(self.worker, Outcomes([], dict.fromkeys(refs, end)), self.now, WALL)

    def succeed(self, refs: list[int]) -> None:
        self.core.report(self.worker, Outcomes(refs, {}), self.now, WALL)

    def freeze(self) -> TailerSession:
        tailer = self.tailer("first")
        self.push(tailer, *[F] * 50)
        self.fail(self.started())
        assert "f" in self.core.outages.closed
        tailer.ended.clear()
        return tailer

    def reason(self, tailer: TailerSession, each: int) -> str:
        return tailer.ended[each].reason


def test_what_is_not_started_when_it_freezes_goes_back_and_costs_nothing() -> None:
    # Given items that run, items that were assigned and not sent, and items in lanes
    world = World(limit=60)
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 50)
    running = world.started()
    unsent = world.push(tailer, *[F] * 10)
    other = world.push(tailer, *[G] * 5)
    world.core.turn(0.0, WALL)
    waiting = world.push(tailer, *[F] * 20)
    world.core.turn(0.0, WALL)
    # When all that run fail
    world.fail(running)
    # Then the others of that function are held, and those of the other function still run
    held = [each for each, end in tailer.ended.items() if end.outcome == Outcome.HELD]
    assert sorted(held) == sorted(unsent + waiting)
    assert {world.reason(tailer, each) for each in held} == {"outage"}
    started = world.started()
    assert len(started) == len(other) and {world.worker.open[each][4] for each in started} == {G}
    assert world.core.running == len(other)


def test_a_session_hears_of_it_with_the_reason_and_may_have_one_item_out() -> None:
    world = World()
    tailer = world.freeze()
    assert tailer.closed is not None
    [closed] = tailer.closed
    assert (closed.function, closed.probes, closed.since) == ("f", 1, WALL)
    assert (
        closed.reason
        == "f is clogged (its circuit breaker is open): of its last first attempts 92 % failed (no database)"
    )
    [state] = inspect(world.core, "s", 0.0).clogged
    assert (state.function, state.state, state.reason, state.since) == ("f", "frozen", closed.reason, WALL)


def test_what_was_pushed_before_its_session_heard_goes_back_and_only_the_newest_asks() -> None:
    # Given a frozen function, and items that a session pushed before it heard of that
    world = World()
    tailer = world.freeze()
    late = world.push(tailer, *[F] * 16)
    # Then one of them asks to be the probe, and the others are held
    assert {ref for ref, end in tailer.ended.items() if end.reason == "outage"} == set(late[:-1])
    [state] = inspect(world.core, "s", 0.0).clogged
    assert state.asking == 1
    # When the session, which heard of it now, pushes a probe of its own, then that one asks
    [probe] = world.push(tailer, F)
    assert tailer.ended.keys() == set(late)
    world.now = 1.0
    assert [world.worker.open[each][1] for each in world.started()] == [probe]


def test_one_probe_at_a_time_in_turns_between_sessions() -> None:
    # Given three sessions that each ask with one item
    world = World()
    tailers = [world.freeze(), world.tailer("second"), world.tailer("third")]
    for tailer in tailers:
        world.push(tailer, F)
    assert explain(world.core, "second/3-0", 0.0, WALL).reason == "outage"
    assert world.started() == []
    # When time passes, then one of them starts at a time, first come first served, each later than the one before
    owners, waits = [], []
    for _ in range(6):
        at = world.core.next_at
        assert at is not None
        waits.append(at - world.now)
        world.now = at
        [probe] = world.started()
        owners.append(world.worker.open[probe][0].name)
        assert world.started() == []
        world.fail([probe])
        world.push(next(each for each in tailers if each.name == owners[-1]), F)
    assert owners == ["first", "second", "third"] * 2
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


def test_the_first_success_opens_and_starts_all_that_asked() -> None:
    world = World()
    tailer = world.freeze()
    other = world.tailer("other")
    world.push(tailer, F)
    world.push(other, F)
    world.now = 1.0
    [probe] = world.started()
    world.succeed([probe])
    assert not world.core.outages.closed and not world.core.roster.functions["f"].frozen
    assert tailer.closed == frozenset()
    assert len(world.started()) == 1
    world.push(tailer, *[F] * 10)
    assert len(world.started()) == 10


def test_who_waits_for_an_answer_and_who_said_so_is_not_frozen() -> None:
    world = World()
    world.freeze()
    for tailer in (world.tailer("calls", patient=True), world.tailer("parks", through=True)):
        world.push(tailer, *[F] * 3)
        assert tailer.closed == frozenset()
        assert len(world.started()) == 3


def test_retries_are_no_evidence_and_a_wait_is_neither() -> None:
    world = World(limit=200)
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 100, attempt=2)
    world.fail(world.started())
    world.push(tailer, *[F] * 100)
    world.fail(world.started(), Ended(Outcome.THROTTLED, "later"))
    world.push(tailer, *[F] * 100)
    world.fail(world.started(), Ended(Outcome.LOST, "its worker went"))
    world.push(tailer, *[F] * 100)
    world.fail(world.started(), Ended(Outcome.RETRY, "not ready yet", after=2.0, asked=True))
    assert not world.core.outages.closed


def test_a_function_whose_retries_end_well_is_not_frozen() -> None:
    world = World(limit=200)
    tailer = world.tailer("t")
    for _ in range(40):
        world.push(tailer, *[F] * 5)
        world.fail(world.started())
        world.push(tailer, *[F] * 5, attempt=2)
        world.succeed(world.started())
    assert not world.core.outages.closed


def test_a_success_of_any_attempt_thaws_once_it_started_after_the_freeze() -> None:
    # Given a frozen function, of which a retry still runs, and a call that somebody waits for
    world = World()
    tailer = world.tailer("t")
    [before] = (world.push(tailer, F, attempt=2), world.started())[1]
    world.push(tailer, *[F] * 49)
    world.fail(world.started())
    assert "f" in world.core.outages.closed
    world.now = 0.5
    [after] = (world.push(world.tailer("calls", patient=True), F, attempt=3), world.started())[1]
    # When what started before ends well, then that says little; when what started since does, it works again
    world.succeed([before])
    assert "f" in world.core.outages.closed
    world.succeed([after])
    assert not world.core.outages.closed


def test_a_session_that_sends_another_item_keeps_its_turn_to_probe() -> None:
    # Given two sessions that ask with one item each
    world = World()
    one, two = world.freeze(), world.tailer("two")
    world.push(one, F)
    world.push(two, F, attempt=2)
    # When the first in turn sends another one, which replaces its former one
    [again] = world.push(one, F)
    # Then that one is the next probe, and after it the other session's
    world.now = 1.0
    [probe] = world.started()
    assert world.worker.open[probe][:2] == (one, again)
    world.fail([probe])
    world.now = 3.0
    [probe] = world.started()
    assert world.worker.open[probe][0] is two


def test_one_process_that_died_is_one_failure_however_much_ran_in_it() -> None:
    # Given many items in one process
    world = World(limit=200)
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 200)
    # When it dies, then one of them ended it, or none: that says little of the function
    world.fail(world.started(), DIED)
    assert not world.core.outages.closed
    # And when each of them ends its process when it runs alone, that says all
    world.push(tailer, *[F] * 44, crashes=1)
    for each in world.started():
        world.fail([each], DIED)
    assert "f" in world.core.outages.closed


def test_what_ends_its_process_alone_again_and_again_says_so_once() -> None:
    world = World(limit=200)
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 100, crashes=2)
    for each in world.started():
        world.fail([each], DIED)
    assert not world.core.outages.closed


def test_a_poisoned_key_freezes_nothing() -> None:
    world = World(limit=200)
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 200, key="customer 7")
    world.fail(world.started())
    assert not world.core.outages.closed


def test_a_probe_that_is_lost_makes_room_for_the_next_one() -> None:
    world = World()
    tailer = world.freeze()
    world.push(tailer, F)
    world.now = 1.0
    assert len(world.started()) == 1
    world.core.forget_worker(world.worker, 1.0)
    assert world.core.outages.clogs["f"].state == "probing"
    world.core.turn(1.0, WALL)
    assert world.core.outages.clogs["f"].state == "frozen"


def test_evidence_is_forgotten_when_a_function_has_been_well_for_long() -> None:
    world = World()
    tailer = world.tailer("t")
    world.push(tailer, F, F)
    one, two = world.started()
    world.fail([one])
    world.succeed([two])
    assert world.core.outages.clogs and world.core.returns.evidence.watched
    world.core.outages.tick(1e6)
    assert not world.core.outages.clogs and not world.core.returns.evidence.watched


def test_successes_that_are_looked_at_later_weigh_what_they_weighed() -> None:
    # Given a function of which something failed, so that its successes count
    world = World()
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 50)
    refs = world.started()
    # When batches end well, with none of another kind among them, and then one in which some fail
    world.fail(refs[:1])
    for first in (1, 11, 21):
        world.succeed(refs[first : first + 10])
    world.core.report(world.worker, Outcomes(refs[31:36], dict.fromkeys(refs[36:50], BROKEN)), 0.0, WALL)
    # Then the rule knows what it would have known, had it looked at each batch by itself
    each = Clog(ClogLimits(), 0.0)
    for passed, failed in ((0, 1), (10, 0), (10, 0), (10, 0), (5, 14)):
        each.note(passed, [""] * failed, 0.0)
    clog = world.core.outages.clogs["f"]
    assert abs(clog.passing - each.passing) < 1e-9 and abs(clog.usual - each.usual) < 1e-9
    assert clog.seen == each.seen == 50


def test_successes_alone_are_looked_at_now_and_then() -> None:
    world = World()
    tailer = world.tailer("t")
    world.push(tailer, *[F] * 40)
    refs = world.started()
    world.fail(refs[:1])
    world.succeed(refs[1:])
    assert world.core.outages.clogs["f"].seen == 1
    world.core.tick(0.0, WALL)
    assert world.core.outages.clogs["f"].seen == 40
