"""Seeded worlds: the promises hold in three hundred of them, and one seed always tells the same story."""

import asyncio
import os
from dataclasses import replace

import pytest

from tailrace.testing.simulation.child import Verdict
from tailrace.testing.simulation.plan import Deed, Fault, Item, Plan
from tailrace.testing.simulation.run import SimulateOptions, main, simulate
from tailrace.testing.simulation.scenarios import ordered
from tailrace.testing.simulation.scenarios_several import LEFT_AND_DIED, ROLLING
from tailrace.testing.simulation.shrink import fewer
from tailrace.testing.simulation.story import Story


def verdicts(options: SimulateOptions) -> list[Verdict]:
    return asyncio.run(simulate(options, lambda done, total, wrong: None))


def hold(first: int, seeds: int, jobs: int) -> None:
    """Asserts that the promises hold in the worlds of these seeds."""
    found = verdicts(SimulateOptions(seeds=seeds, first=first, jobs=jobs, shrink=False))
    wrong = [verdict for verdict in found if verdict.wrong]
    assert len(found) == seeds
    assert wrong == [], "\n".join(f"tailrace simulate --seed {each.seed} --trace: {each.wrong[0]}" for each in wrong)


#: The first of three hundred worlds, in parts that several processes of pytest can share; the others are long.
PARTS, EACH = 3, 10


@pytest.mark.timeout(400)  # on a machine that does other work as well
@pytest.mark.parametrize("first", range(0, PARTS * EACH, EACH))
def test_the_promises_hold_in_the_first_worlds(first: int) -> None:
    hold(first, EACH, jobs=1)


@pytest.mark.long(minutes=2)
def test_the_promises_hold_in_three_hundred_worlds() -> None:
    hold(PARTS * EACH, 300 - PARTS * EACH, jobs=os.cpu_count() or 1)


@pytest.mark.parametrize(
    "seed",
    [30132, 100303, 100683, 100976, 101298, 102200, 102379, 102497, 103755, 104270, 104534, 104649, 2026130677],
)
def test_worlds_that_found_a_defect_of_ours_find_none(seed: int) -> None:
    [verdict] = verdicts(SimulateOptions(seeds=1, first=seed, jobs=1, shrink=False))
    assert verdict.wrong == []


def test_one_seed_tells_one_story_in_any_process() -> None:
    first = verdicts(SimulateOptions(seeds=3, first=1000, jobs=1))
    again = verdicts(SimulateOptions(seeds=3, first=1000, jobs=2))
    assert [each.hash for each in first] == [each.hash for each in again]
    assert len({each.hash for each in first}) == 3


def test_a_healthy_world_runs_each_item_once() -> None:
    # Given items that succeed, and nothing that goes wrong
    items = tuple(Item(n, "queue" if n % 2 else "orders", 1.0 + n * 0.1, (Deed("ok", 0.5),)) for n in range(20))
    # When the story is told
    told = Story(Plan(1, items, calm=10.0)).tell()
    # Then each ran once, and all is over soon
    assert told.wrong == []
    assert told.runs == 20
    assert told.rest < 15.0


def test_a_frozen_worker_is_given_up_and_its_items_run_elsewhere() -> None:
    # Given an item that runs in a worker whose every process is frozen for longer than its leases
    item = Item(0, "orders", 1.0, (Deed("ok", 30.0), Deed("ok", 1.0)))
    faults = (Fault(5.0, "executors", "worker1", what="all", seconds=80.0),)
    # When the story is told
    told = Story(Plan(1, (item,), faults, workers=1, calm=90.0)).tell()
    # Then it ran again, after the first run had been killed
    assert told.wrong == []
    assert told.runs == 2


@pytest.mark.parametrize("order", ["none", "partition"])
@pytest.mark.parametrize("before", [(), (Deed("raise"),)], ids=["from its source", "as a copy"])
def test_what_was_lost_while_its_node_was_away_runs_again_though_nothing_else_happens(
    order: str, before: tuple[Deed, ...]
) -> None:
    # Given one item, whose worker stands still beyond its leases while the node is away
    item = Item(0, "orders", 1.0, (*before, Deed("ok", 30.0), Deed("ok", 0.1)))
    faults = (Fault(5.0, "kill", "node", seconds=25.0), Fault(4.5, "freeze", "worker1", seconds=40.0))
    # When the node has its stream again, and hears that it was lost before it has read it
    told = Story(Plan(1, (item,), faults, workers=1, order=order, calm=60.0, patience=100.0)).tell()
    # Then it is handed out again
    assert told.wrong == []
    assert told.runs == 2 + len(before)


def test_schedulers_replaced_in_turn_under_load_cost_nothing() -> None:
    # Given items that run while each of three schedulers behind one address is drained and replaced
    # When the story is told
    told = Story(ROLLING).tell()
    # Then each ran once: nothing was lost, and no attempt was charged
    assert told.wrong == []
    assert told.runs == len(ROLLING.items)


def test_a_stream_whose_row_names_two_schedulers_is_taken_at_once_when_both_confirm() -> None:
    # Given an item that runs below a scheduler which its tailer left, and died; and another item that comes then
    plan = replace(LEFT_AND_DIED, items=(*LEFT_AND_DIED.items, ordered(1, 7.0, (Deed("ok", 0.1),))))
    # When the story is told
    story = Story(plan)
    told = story.tell()
    # Then the heir runs the other item at once, long before a lease of its source would be over
    assert told.wrong == []
    assert story.journal.stories["orders/0/1"].executions[0].start < 12.0


def test_a_wall_clock_that_jumps_ends_no_claim() -> None:
    # Given an item of the queue that runs for a while
    item = Item(0, "queue", 1.0, (Deed("ok", 30.0),))
    # When the clock of its store jumps beyond every lease, ahead and back again
    faults = (Fault(5.0, "jump", "node", amount=3600.0), Fault(9.0, "jump", "node", amount=-3600.0))
    told = Story(Plan(1, (item,), faults)).tell()
    # Then it runs once
    assert told.wrong == []
    assert told.runs == 1


def test_a_queue_put_back_to_an_older_copy_hands_out_under_higher_fences() -> None:
    # Given an item that was handed out after its queue was copied
    item = Item(0, "queue", 1.0, (Deed("ok", 100.0, stubborn=True), Deed("ok", 0.1)), delay=3.0)
    # When the copy takes the queue's place, and its process is started at once
    faults = (Fault(3.0, "copy", "node", what="queue"), Fault(8.0, "restore", "node", what="queue", seconds=0.5))
    told = Story(Plan(1, (item,), faults, calm=90.0)).tell()
    # Then it waits for the lease of a source: the item runs again, when nothing of it runs any more
    assert told.wrong == []
    assert told.runs == 2


def test_nothing_is_granted_on_the_strength_of_a_claim_that_the_store_does_not_know() -> None:
    # Given an item that was handed out after its queue was copied, and runs on
    item = Item(0, "queue", 1.0, (Deed("ok", 100.0, stubborn=True), Deed("ok", 0.1)), delay=3.0)
    # When the copy takes the queue's place while its tailer, a process apart, lives
    faults = (Fault(3.0, "copy", "store", what="queue"), Fault(8.0, "restore", "store", what="queue", seconds=0.5))
    told = Story(Plan(1, (item,), faults, apart=True, tailers=1, calm=90.0)).tell()
    # Then no lease goes on beyond what the store last said, and the item runs again
    assert told.wrong == []
    assert told.runs == 2


CLOCKS = [(host, ahead) for host in ("store", "delay", "tailer1") for ahead in (-5.0, 5.0)]


@pytest.mark.parametrize(("host", "ahead"), CLOCKS)
def test_a_host_whose_clock_is_off_costs_no_storm_of_calls(host: str, ahead: float) -> None:
    # Given items that fail and are tried again, in a world with one host whose clock is off
    failing = (Deed("raise"), Deed("raise"), Deed("throttled", 0.1, 3.0), Deed("later", 0.1, 6.0), Deed("ok"))
    items = [Item(n, "orders" if n % 3 else "queue", 1.0 + n / 5, failing) for n in range(12)]
    plan = Plan(1, tuple(items), apart=True, tailers=1, calm=90.0)
    told = Story(replace(plan, faults=(Fault(3.0, "jump", host, amount=ahead),))).tell()
    # Then nothing is wrong, and its hosts do about as much as where all agree
    assert told.wrong == []
    assert told.steps < 1.25 * Story(plan).tell().steps


def test_a_seed_that_fails_is_told_at_once_and_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    # Given a mistake that every world shows, and three worlds
    # When they are run
    code = main(SimulateOptions(seeds=3, shrink=False, jobs=1, bug="frontier is off by one"))
    # Then each is told when it is found, and in the end with the command that shows it
    told = capsys.readouterr()
    assert code == 1
    assert [line.partition(":")[0] for line in told.err.splitlines()] == ["seed 0", "seed 1", "seed 2"]
    assert "again: tailrace simulate --seed 2 --trace --bug 'frontier is off by one'\n" in told.out


def test_what_still_fails_is_made_small() -> None:
    assert fewer(list(range(40)), lambda some: {7, 31} <= set(some)) == [7, 31]
    assert fewer([1, 2, 3], lambda some: True) == []
