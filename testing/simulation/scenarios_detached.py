"""Worlds for mistakes with items that are passed while they run (tailers/departures/detaching.py): see scenarios.py."""

from __future__ import annotations

from .plan import Deed, Fault, Item, Plan
from .scenarios import LONG, ordered, plan_of_faults

#: An item that runs on and on, and one behind it that is done at once, so that the first is in the way.
_ITEMS: list[Item] = [ordered(0, 1.0, LONG), ordered(1, 1.5, (Deed("ok", 0.1),))]


def _detaching(*faults: Fault) -> Plan:
    return plan_of_faults(_ITEMS, [*faults], slots=4, detach_after=2.0, calm=60.0, patience=90.0)


#: The node dies while the item runs, and is back before anything of it ends: it is adopted.
OWNER_DIES = _detaching(Fault(8.0, "kill", "node", seconds=0.3))

#: The same with the scheduler: nobody can say that it runs, and after every lease it runs again.
BOTH_DIE = _detaching(Fault(8.0, "kill", "node", seconds=0.3), Fault(8.0, "kill", "scheduler1", seconds=0.3))

#: The scheduler is replaced: what ran below it may run for a while.
SCHEDULER_REPLACED = _detaching(Fault(8.0, "kill", "scheduler1", seconds=0.2))

#: By the name of the bug: the worlds in which it shows.
SCENARIOS: dict[str, list[Plan]] = {
    "passed before its row is durable": [OWNER_DIES],
    "a successor starts what is detached and runs": [OWNER_DIES],
    "a guard starts whatever its row says": [OWNER_DIES],
    "what a dead owner had detached is forgotten": [BOTH_DIE],
    "a detached item that was lost is released at once": [SCHEDULER_REPLACED],
}
