"""The wire between hosts: the fate of a packet while wires are broken; and the plan that breaks them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tailrace.bench.faults import hosts_plan, plan
from tailrace.bench.faults.host_wire import APART, DEAF, HOST_WAYS, LAG, LATE, LOSS, LOST, MUTE, HostBreak, PacketFate
from tailrace.bench.faults.path import Reach, reach_of


def passing(*broken: HostBreak) -> PacketFate:
    found = PacketFate(random.Random(1))
    found.broken = frozenset(broken)
    return found


def test_a_whole_wire_passes_everything_at_once() -> None:
    assert passing().delay(1, 2) == 0.0


@pytest.mark.parametrize(
    ("way", "there", "back"), [(APART, None, None), (DEAF, None, 0.0), (MUTE, 0.0, None), (LAG, LATE, LATE)]
)
def test_what_is_broken_is_so_in_its_direction_and_at_its_host_alone(
    way: str, there: float | None, back: float | None
) -> None:
    # Given one way in which the second host's wire is broken, when packets go to it, from it, and between others
    wire = passing(HostBreak(2, way))
    assert (wire.delay(1, 2), wire.delay(2, 1), wire.delay(1, 3)) == (there, back, 0.0)


def test_a_packet_between_two_late_hosts_is_late_twice() -> None:
    assert passing(HostBreak(1, LAG), HostBreak(2, LAG)).delay(1, 2) == 2 * LATE


def test_a_lossy_host_loses_its_share() -> None:
    wire = passing(HostBreak(2, LOSS))
    lost = sum(wire.delay(1, 2) is None for _ in range(10_000))
    assert LOST * 0.9 < lost / 10_000 < LOST * 1.1
    assert all(wire.delay(1, 3) == 0.0 for _ in range(100))


def test_every_second_fault_is_a_hosts_and_every_fifth_one_the_servers() -> None:
    steps = hosts_plan.faults(100, 1, server=True)
    kinds = Counter(
        "host" if set(words) & {*HOST_WAYS, hosts_plan.LOSE} else "server" if step.kind == "kill server" else "other"
        for step in steps
        for words in [[action.what for action in step.actions]]
    )
    assert kinds["host"] >= 40 and kinds["server"] == 20 and kinds["other"] >= 30


def test_a_long_plan_breaks_each_host_in_each_way() -> None:
    done = {action for step in hosts_plan.faults(800, 3, server=True) for action in step.actions}
    assert done == {action for actions in hosts_plan.families().values() for action in actions}


def test_each_part_of_a_host_is_one_whose_faults_have_a_reach() -> None:
    assert hosts_plan.parts_of("host-1") == []
    assert [reach_of(part) for part in hosts_plan.parts_of("host-2")] == [Reach.RAN, Reach.TAILED]
    assert {*hosts_plan.ELSEWHERE} == {*plan.WORKERS, hosts_plan.TAILERS[1]}
