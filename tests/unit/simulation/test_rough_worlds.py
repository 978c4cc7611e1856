"""Accidents below the stores: a write that lands when its writer is gone, a file that is busy or full."""

import pytest

from tailrace.testing.simulation.bugs import planted
from tailrace.testing.simulation.hunt import kind_of
from tailrace.testing.simulation.plan import Deed, Fault, Item, Plan
from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.plans_rough import UNHEARD
from tailrace.testing.simulation.story import Story, StoryEnd


def told(items: int, *faults: Fault, apart: bool = False) -> StoryEnd:
    """A world of items that come within some seconds, some of which fail at first."""
    deeds = (Deed("raise", 0.1), Deed("ok", 0.1))
    brought = tuple(Item(n, ("queue", "orders")[n % 2], 1.0 + n / 5, deeds if n % 4 else ()) for n in range(items))
    return Story(Plan(1, brought, faults, apart=apart, calm=40.0, patience=120.0)).tell()


def test_a_write_lands_though_its_writer_is_dead() -> None:
    # Given a tailer whose last writes are kept back on their way, and that dies then
    faults = (Fault(3.0, "zombie", "tailer1", "store", 8.0, amount=0.5), Fault(3.5, "kill", "tailer1", seconds=30.0))
    # When the story is told
    story = told(20, *faults, apart=True)
    # Then they were heard of later, and nothing is wrong
    assert story.happened["late writes"] > 0
    assert story.wrong == []


@pytest.mark.parametrize("file", ["queue", "log", "delay", "state"])
def test_a_full_file_takes_nothing_until_there_is_room(file: str) -> None:
    story = told(20, Fault(2.0, "full", "node", what=file, seconds=9.0))
    assert story.happened["full file"] > 0
    assert story.wrong == []


def test_a_busy_file_is_waited_for_and_given_up_in_the_end() -> None:
    story = told(20, Fault(2.0, "busy", "node", what="queue", seconds=12.0))
    assert story.happened["wait for a file"] > 0
    assert story.happened["busy file"] > 0
    assert story.wrong == []


def test_a_clock_is_set_while_its_store_is_down() -> None:
    story = told(12, Fault(3.0, "kill", "node", seconds=4.0), Fault(5.0, "jump", "node", amount=3000.0))
    assert story.happened["clock set while down"] == 1
    assert story.wrong == []


@pytest.mark.parametrize(("after", "answer"), [(0.1, "cancelled"), (2.0, "cancelled while out")])
def test_what_is_cancelled_does_not_start_again(after: float, answer: str) -> None:
    # Given an item that waits for a second, then runs and fails, and is cancelled before or meanwhile
    item = Item(0, "queue", 1.0, (Deed("raise", 8.0), Deed("ok", 0.1)), delay=1.0, cancel=after)
    # When the story is told
    story = Story(Plan(1, (item,), calm=20.0)).tell()
    # Then it never succeeded
    assert story.wrong == []
    assert story.happened == {answer: 1}
    assert story.runs == (answer == "cancelled while out")


@pytest.mark.parametrize("rate", [0.99, 1.01])
def test_a_process_whose_lease_ends_while_it_stands_still_does_nothing_more(rate: float) -> None:
    # Given an executor that stands still as it arms its timer, in a worker that is cut off then
    item = Item(0, "orders", 3.0, (Deed("ok", 0.5),))
    still = (Fault(2.5, "executors", "worker1", what="stall", seconds=38.0, number=0),)
    cut = tuple(Fault(3.3, "both", f"worker{number}", "scheduler1", 60.0) for number in (1, 2))
    # When its clock is slow, or fast
    rates = {"worker1": rate, "worker2": rate}
    story = Story(Plan(1, (item,), still + cut, executors=1, workers=1, rates=rates, calm=90.0)).tell()
    # Then what it goes on with is its timer
    assert story.wrong == []


def test_random_worlds_have_all_of_it() -> None:
    kinds = {fault.kind for seed in range(60) for fault in plan_of(seed).faults}
    assert kinds >= {"zombie", "busy", "full", "jump"}


def test_random_worlds_find_a_lease_that_counts_from_when_its_renewal_was_received() -> None:
    # Given the random worlds in which a worker hears late, and is then not heard any more
    worlds = [plan for plan in map(plan_of, range(90)) if any(fault.seconds == UNHEARD for fault in plan.faults)]
    # When a worker counts its leases so
    with planted("worker counts a renewal from its receipt"):
        found = [line for plan in worlds for line in Story(plan).tell().wrong]
    # Then some of what it runs goes on for too long
    assert {kind_of(line) for line in found} >= {"beyond its lease"}
