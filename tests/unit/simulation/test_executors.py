"""Executors in the simulated world: time-outs that are heard and that are not, functions in threads, freezes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.testing.simulation.journal import Execution
from tailrace.testing.simulation.plan import Deed, Fault, Item, Plan
from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.story import Story
from tailrace.testing.simulation.unexplained_runs import BREAKS, ROOM

TIMEOUT = 3.0
HEALING = (*BREAKS, "reset", "pause")
#: Seconds that the executors of the world give a run after its time-out (testing/simulation/overtime.py).
GRACE = 2.0


def runs(plan: Plan) -> dict[int, list[Execution]]:
    """Runs of each item in a world in which nothing is wrong."""
    story = Story(plan)
    assert story.tell().wrong == []
    return {each.n: each.executions for each in story.journal.stories.values()}


def items(*deeds: tuple[Deed, ...]) -> tuple[Item, ...]:
    return tuple(Item(n, "queue", 1.0, each) for n, each in enumerate(deeds))


def test_a_run_that_takes_too_long_is_told_and_tried_again() -> None:
    # Given an item that takes 30 s when it runs first, of a function with a time-out
    plan = Plan(1, items((Deed("ok", 30.0), Deed("ok", 0.1))), workers=1, timeout=TIMEOUT, calm=30.0)
    # When it has run
    first, again = runs(plan)[0]
    # Then it ended at its time-out, and that was an attempt
    assert first.end is not None
    assert TIMEOUT < first.end - first.start < TIMEOUT + 0.2
    assert (first.how, first.attempt, again.how, again.attempt) == ("retry", 1, "ok", 2)


def test_a_run_that_does_not_care_ends_with_its_process_and_costs_its_neighbour_nothing() -> None:
    # Given such an item that does not end, and another one beside it that would not take too long
    stubborn = (Deed("ok", 30.0, stubborn=True), Deed("ok", 0.1))
    brought = (*items(stubborn), Item(1, "queue", 4.0, (Deed("ok", 2.5), Deed("ok", 0.1))))
    # When they have run
    told = runs(Plan(1, brought, workers=1, timeout=TIMEOUT, calm=30.0))
    # Then the process ended after the grace, and only the first one spent an attempt
    first, again = told[0]
    assert first.end is not None
    assert TIMEOUT + GRACE < first.end - first.start < TIMEOUT + GRACE + 0.2
    assert (first.how, again.attempt) == ("killed (70)", 2)
    beside, after = told[1]
    assert (beside.how, after.attempt) == ("killed (70)", 1)


def test_a_process_that_stood_still_gives_its_run_a_grace_from_then_on() -> None:
    # Given a run whose time-out and grace are over while its process is frozen
    freeze = Fault(2.0, "executors", "worker1", what="freeze", seconds=9.0)
    plan = Plan(1, items((Deed("ok", 30.0), Deed("ok", 0.1))), (freeze,), workers=1, timeout=TIMEOUT, calm=30.0)
    # When that goes on
    first, _ = runs(plan)[0]
    # Then the run hears that it should end, and its process lives
    assert first.how == "retry"


def test_functions_in_threads_do_the_same_deeds() -> None:
    # Given a world of a function that is a `def`, one run of which is taken back while it runs
    deeds = [
        (Deed("raise", 0.1), Deed("later", 0.1, 3.0)),
        (Deed("fatal"),),
        (Deed("crash", 1.0),),
        (Deed("ok", 30.0),),
    ]
    brought = [replace(item, cancel=5.0 * (item.n == 3)) for item in items(*deeds)]
    # When its story is told
    told = runs(Plan(1, tuple(brought), workers=1, executors=4, threads=True, calm=60.0))
    # Then each ended as it should, and the same happens when it is told again
    assert [run.how for run in told[0]] == ["retry", "retry", "ok"]
    assert [run.how for run in told[1]] == ["fatal"]
    assert [run.how for run in told[2]][-1] == "ok"
    assert told[3][-1].how == "cancelled"


def test_random_worlds_have_time_outs_and_threads() -> None:
    plans = [plan_of(seed) for seed in range(60)]
    assert sum(plan.timeout > 0 for plan in plans) > 5
    assert sum(plan.threads for plan in plans) > 3
    assert any(plan.threads and plan.timeout for plan in plans)


def test_a_run_in_a_thread_looks_whether_its_time_is_over() -> None:
    # Given an item that takes 30 s when it runs first, of a `def` function with a time-out
    plan = Plan(1, items((Deed("ok", 30.0), Deed("ok", 0.1))), workers=1, timeout=TIMEOUT, threads=True, calm=30.0)
    # When it has run
    first, again = runs(plan)[0]
    # Then it saw that its time was over when it was, and that was an attempt
    assert first.timed_out
    assert TIMEOUT - 0.1 < first.told - first.start < TIMEOUT + 0.1
    assert (first.how, first.attempt, again.how, again.attempt) == ("retry", 1, "ok", 2)


@pytest.mark.parametrize("threads", [False, True])
def test_a_run_waits_for_another_item_and_gives_it_its_place(threads: bool) -> None:
    # Given a worker with one place, an item that waits for the next one, and that comes later
    brought = (Item(0, "queue", 1.0, (Deed("ok", 0.1, child=1),)), Item(1, "orders", 5.0))
    plan = Plan(1, brought, workers=1, slots=1, threads=threads, calm=10.0, patience=30.0)
    # When they have run
    told = runs(plan)
    # Then the first one was over after the other, and ran once
    (parent,), (child,) = told[0], told[1]
    assert parent.start < child.start
    assert child.end is not None and parent.end is not None and child.end < parent.end


def test_a_blocked_loop_keeps_others_from_running_and_costs_nobody_a_lease() -> None:
    # Given an item that blocks its loop for longer than a lease, and one that runs beside it by then
    deeds = ((Deed("ok", 2.0), Deed("ok", 0.1)), (Deed("ok", 25.0, blocks=True), Deed("ok", 0.1)))
    brought = tuple(Item(n, "queue", 1.0 + n, each) for n, each in enumerate(deeds))
    # When they have run
    told = runs(Plan(1, brought, workers=1, calm=40.0))
    # Then each ran once, and the one beside was over when the loop turned again
    (beside,), (blocks,) = told[0], told[1]
    assert beside.end is not None and blocks.end is not None
    assert beside.end >= blocks.start + 25.0 > beside.start + 2.0


def test_what_waits_in_a_process_that_died_starts_no_more() -> None:
    # Given threads of one process, which one of its items takes down while others wait in it
    quick = [Item(n, "orders", 1.0, (Deed("ok", 0.005),)) for n in range(80)]  # so it is given more than it runs
    brought = (*quick, *(Item(n, "orders", 1.3, (Deed("crash", 1.0),)) for n in range(80, 85)))
    # When the story is told, and its world ends
    told = runs(Plan(1, brought, workers=1, slots=1, threads=True, calm=30.0))
    # Then nothing started that was not there any more
    assert all([run.how for run in told[n]][-1] == "ok" for n in range(80, 85))


def test_random_worlds_have_runs_that_wait_and_breaks_that_heal() -> None:
    plans = [plan_of(seed) for seed in range(200)]
    assert sum(any(deed.child is not None for item in plan.items for deed in item.deeds) for plan in plans) > 10
    healing = [plan for plan in plans if plan.faults and all(fault.kind in HEALING for fault in plan.faults)]
    breaks = [sum(fault.seconds for fault in plan.faults if fault.kind in BREAKS) for plan in healing]
    assert sum(0 < seconds < ROOM for seconds in breaks) > 10
