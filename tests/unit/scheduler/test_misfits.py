"""Items that one version of their function does not take: they go to another one that is attached, and are fatal once
all of them refused."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind, Outcomes
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.misfits import MOST
from tailrace.scheduler.rules.misfit import AGAIN, left_to_try
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession

VERSIONS = st.sets(st.sampled_from("abc"))


class World:
    """A scheduler, a tailer that pushes, and a worker of each version."""

    def __init__(self, *versions: str) -> None:
        self.core = Core(SchedulerConfig(), LeaseSizes(), ready=True)
        self.tailer: TailerSession = self.core.attach_tailer("t", "t", 0.0)
        self.core.tailer_connected(self.tailer)
        self.workers = {version: self.worker(version) for version in versions}
        self._number = 0

    def worker(self, version: str) -> WorkerSession:
        worker = self.core.attach_worker(version, version, 0.0)
        worker.versions = {"f": version}
        self.core.worker_connected(worker, [FunctionSpec("f")], [PoolLimits("default", ("f",), 10, 10)], 0.0)
        return worker

    def push(self, *ids: str) -> dict[str, list[str]]:
        """Pushes items; returns which of them went to which version."""
        self._number += 1
        count = len(ids)
        payloads, attempts = [b""] * count, [1] * count
        self.core.push(
            self.tailer, Flight(self._number, self._number, [Kind("f")] * count, [*ids], payloads, attempts), 0, 30, 0.0
        )
        self.core.turn(0.0, 1000.0)
        given: dict[str, list[str]] = {}
        for version, worker in self.workers.items():
            while (made := self.core.assignment(worker, 0.0)) is not None:
                given.setdefault(version, []).extend(item[2] for item in made[0].items)
        return given

    def refuses(self, version: str) -> list[Ended]:
        """Has a version refuse all that it has. Returns what the tailer is told."""
        worker = self.workers[version]
        ends = {ref: Ended(Outcome.FATAL, "f: argument 'c' is missing", misfit=True) for ref in worker.open}
        self.core.report(worker, Outcomes([], ends), 0.0, 1000.0)
        told, self.tailer.ended = list(self.tailer.ended.values()), {}
        return told


def test_what_a_version_refuses_goes_to_the_others_and_is_fatal_when_all_did() -> None:
    # Given an item that no version takes
    world = World("a", "b")
    (first,) = world.push("x")
    # When one of them refuses it, then it goes back for a second, free of charge
    (end,) = world.refuses(first)
    assert (end.outcome, end.after) == (Outcome.HELD, AGAIN)
    assert "argument 'c' is missing" in end.reason
    # And when it comes again it goes to the other one, however often
    (second,) = world.push("x")
    assert second != first
    # And when that one refuses it as well, it is fatal, and forgotten
    (end,) = world.refuses(second)
    assert end.outcome == Outcome.FATAL
    assert end.reason == "f: argument 'c' is missing (all 2 attached versions refuse it)"
    assert not world.core.misfits.refused


def test_many_that_were_refused_go_to_the_version_that_has_not() -> None:
    # Given items that one version refused; the other one has room for two more
    world = World("a", "b")
    refused = world.push(*(f"x{n}" for n in range(16)))["a"]
    world.refuses("a")
    # When they come again, then two go there, and the others wait for it
    assert world.push(*refused) == {"b": refused[:2]}
    world.core.report(world.workers["b"], Outcomes(list(world.workers["b"].open), {}), 0.0, 1000.0)
    assert world.push() == {"b": refused[2:]}


def test_what_one_version_refused_waits_for_no_version_that_left() -> None:
    # Given an item that one of two versions refused, before the other one left
    world = World("a", "b")
    (first,) = world.push("x")
    world.refuses(first)
    (other,) = {"a", "b"} - {first}
    world.core.worker_draining(world.workers[other], 0.0)
    # When it comes again, then the first one is asked again, and it is fatal
    assert world.push("x") == {first: ["x"]}
    (end,) = world.refuses(first)
    assert end.outcome == Outcome.FATAL


def test_one_version_alone_refuses_for_good_and_that_is_evidence() -> None:
    world = World("a")
    for number in range(60):
        world.push(f"x{number}")
        for end in world.refuses("a"):
            assert end.outcome == Outcome.FATAL
        if world.core.outages.closed:
            return
    raise AssertionError("the circuit breaker stays closed")


def test_what_is_handed_back_is_no_evidence() -> None:
    world = World("a", "b")
    for number in range(60):
        (version,) = world.push(f"x{number}")
        world.refuses(version)
    assert not world.core.outages.closed


def test_what_succeeds_is_forgotten_and_the_rest_is_bounded() -> None:
    world = World("a", "b")
    (first,) = world.push("x")
    world.refuses(first)
    (second,) = world.push("x")
    world.core.report(world.workers[second], Outcomes(list(world.workers[second].open), {}), 0.0, 1000.0)
    assert not world.core.misfits.refused
    world.core.misfits.refused = {f"y{n}": frozenset("a") for n in range(MOST)}
    (first,) = world.push("z")
    world.refuses(first)
    assert len(world.core.misfits.refused) == MOST
    assert "y0" not in world.core.misfits.refused


@given(refused=VERSIONS, attached=VERSIONS)
def test_there_is_something_left_to_try_exactly_when_an_attached_version_has_not_refused(
    refused: set[Any], attached: set[Any]
) -> None:
    assert left_to_try(refused, attached) == any(version not in refused for version in attached)
