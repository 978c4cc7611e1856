"""An application whose rows a tailer carries to the queue, which dies around that."""

import pytest

from tailrace.testing.simulation.plan import Fault, Plan, ShopOrder
from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.story import Story

ORDERS = tuple(ShopOrder(n, 2.0 + n / 50, rolled_back=n == 2) for n in range(5))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_relay_that_dies_around_a_removal_makes_no_second_workload(when: str) -> None:
    # Given an application, one of whose orders is rolled back
    # When the relay dies before it has removed the rows that the queue has, or just after
    dies = Fault(1.0, "point", "node", "", 8.0, f"shop: {when} commit", number=1)
    story = Story(Plan(1, (), (dies,), orders=ORDERS, calm=30.0))
    told = story.tell()
    # Then each order that was committed became one workload, and the other one none
    assert told.wrong == []
    assert sorted(each.n for each in story.journal.stories.values()) == [0, 1, 3, 4]


def test_two_relays_carry_one_outbox_in_order() -> None:
    told = Story(Plan(1, (), apart=True, tailers=2, orders=ORDERS, calm=30.0)).tell()
    assert told.wrong == []
    assert told.runs == 4


def test_random_worlds_have_applications_where_no_file_is_put_back() -> None:
    plans = [plan for plan in map(plan_of, range(200)) if plan.orders]
    assert 10 < len(plans) < 40
    assert not any(fault.kind == "restore" for plan in plans for fault in plan.faults)
    assert any(fault.what.startswith("shop: ") for plan in plans for fault in plan.faults)
