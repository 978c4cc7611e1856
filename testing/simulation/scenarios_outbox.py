"""Worlds with an application whose outbox a tailer carries: each made for a mistake of bugs/outbox.py."""

from __future__ import annotations

from .plan import Fault, Plan, ShopOrder
from .scenarios import plan_of_faults

_ORDERS = tuple(ShopOrder(n, 2.0 + n / 100, rolled_back=n % 4 == 3) for n in range(10))

#: Nothing goes wrong.
CARRIED = plan_of_faults([], [], orders=_ORDERS, calm=30.0)

#: The relay dies before it removes the rows that the queue has by then, and just after.
CUT_SHORT = [
    plan_of_faults(
        [], [Fault(1.0, "point", "node", what=f"shop: {when} commit", number=1, seconds=8.0)], orders=_ORDERS
    )
    for when in ("before", "after")
]

SCENARIOS: dict[str, list[Plan]] = {
    "a row goes from its outbox before the queue has it": CUT_SHORT,
    "a row that is carried twice is two workloads": CUT_SHORT,
    "a relay removes nothing": [CARRIED],
    "a relay carries the newest rows first": [CARRIED],
}
