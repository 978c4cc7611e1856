"""Lanes and kinds that the closed cells of a demand shut in a queue: exactly those that the cells cover."""

from __future__ import annotations

from itertools import product

import pytest

from tailrace.model.demand import Closed
from tailrace.model.workload import Kind
from tailrace.stores.queue.gates import ShutLanes
from tailrace.stores.queue.kinds import Kinds
from tailrace.tailers.rules.credit import Credit

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
    """The kinds that may be leased, found as claims find them."""
    lanes = [lane for lane, address in kinds.lanes.items() if not gates.shut(*address)]
    shut = {lane: gates.shut_kinds(kinds, lane) for lane in lanes}
    found = {number for number, lane in kinds.lane_of.items() if lane in shut and number not in shut[lane]}
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


PAUSED = Closed("f", reason="paused")
#: Closed cells, and the collections and tenants of f that are pushed all the same.
DROPS = {
    "a collection": ([PAUSED, Closed("f", "c", drop=True)], {("c", ""), ("c", "t"), ("c", "u")}),
    "of a paused source": ([Closed(""), Closed("f", "c", drop=True)], {("c", ""), ("c", "t"), ("c", "u")}),
    "but for a tenant": ([PAUSED, Closed("f", "c", drop=True), Closed("f", "c", "t")], {("c", ""), ("c", "u")}),
    "and a tenant": ([PAUSED, Closed("f", "c", drop=True), Closed("f", "", "t")], {("c", ""), ("c", "u")}),
    "a tenant's": (
        [PAUSED, Closed("f", "c", drop=True), Closed("f", "", "t"), Closed("f", "c", "t", drop=True)],
        {("c", ""), ("c", "t"), ("c", "u")},
    ),
    "the same": ([PAUSED, Closed("f", drop=True)], set[tuple[str, str]]()),
    "a tenant of all": ([PAUSED, Closed("", "", "t", drop=True)], set[tuple[str, str]]()),
    "a tenant of one collection": (
        [Closed("f", "", "t"), Closed("f", "d"), Closed("f", "c", "t", drop=True)],
        {("", ""), ("", "u"), ("c", ""), ("c", "t"), ("c", "u")},
    ),
}


@pytest.mark.parametrize("name", DROPS)
def test_what_is_dropped_inside_of_what_is_paused_is_pushed(kinds: Kinds, name: str) -> None:
    # Given something that is dropped, which is more specific than what is paused around it, or is not
    closed, pushed = DROPS[name]
    wanted = {kind for kind in ALL if kind.function == "f" and (kind.collection, kind.tenant) in pushed}
    credit = Credit()
    credit.close(closed)
    # Then a queue leases it, so that it is dropped, and a tailer does not keep it back
    assert {kind for kind in leased(kinds, ShutLanes(credit.for_queue)) if kind.function == "f"} == wanted
    assert {kind for kind in ALL if kind.function == "f" and not credit.is_closed(kind)} == wanted
