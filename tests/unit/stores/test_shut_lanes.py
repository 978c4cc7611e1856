"""What the closed cells of a demand shut in a queue: exactly what they cover."""

from __future__ import annotations

from itertools import product

import pytest

from tailrace.model.demand import Closed
from tailrace.model.workload import Kind
from tailrace.stores.queue.gates import ShutLanes
from tailrace.stores.queue.kinds import Kinds

ALL = [Kind(*each) for each in product(("f", "g"), (1, 2), ("", "c", "d"), ("", "t", "u"))]


@pytest.fixture
def kinds() -> Kinds:
    made = Kinds()
    for lane, address in enumerate(sorted({kind[:3] for kind in ALL})):
        made.learn_lane(lane, address)
    for number, kind in enumerate(ALL):
        made.learn(number, made.lane_numbers[kind[:3]], kind.tenant)
    return made


def leased(kinds: Kinds, gates: ShutLanes) -> set[Kind]:
    """What may be leased, as claims ask for it."""
    lanes = [lane for lane, address in kinds.lanes.items() if not gates.shut(*address)]
    shut = {lane: gates.shut_kinds(kinds, lane) for lane in lanes}
    found = {number for number, lane in kinds.lane_of.items() if lane in shut and number not in shut[lane]}
    shutters = {lane: gates.shutter(kinds, lane) for lane in lanes}
    assert found == {n for n, lane in kinds.lane_of.items() if lane in shutters and not shutters[lane](n)}
    assert {kinds.kinds[number] for number in found} == {kind for kind in ALL if not gates.shuts(kind)}
    return {kinds.kinds[number] for number in found}


@pytest.mark.parametrize("priority", [0, 2])
@pytest.mark.parametrize("labels", list(product(("", "c"), ("", "t"))))
@pytest.mark.parametrize("exact", [(False, False, False), *product((True,), (True, False), (True, False))])
def test_what_a_closed_cell_covers_is_shut_and_nothing_else(
    kinds: Kinds, labels: tuple[str, str], exact: tuple[bool, bool, bool], priority: int
) -> None:
    # Given a closed cell of which an empty label means every one, or the one without
    said, all_collections, all_tenants = exact
    collection, tenant = "" if all_collections else labels[0], "" if all_tenants else labels[1]
    cell = Closed(
        "f",
        collection,
        tenant,
        priority=priority,
        exact=said,
        all_collections=all_collections,
        all_tenants=all_tenants,
    )
    # Then what it covers is not leased
    assert leased(kinds, ShutLanes([cell])) == {kind for kind in ALL if not cell.covers(kind)}
