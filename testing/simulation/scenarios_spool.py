"""Worlds with a gateway that spools while its store is away: each made for a mistake of bugs/spool.py."""

from __future__ import annotations

from typing import Any

from .plan import Deed, Fault, Item, Plan
from .scenarios import both, plan_of_faults


def _brought(times: list[float], faults: list[Fault], **options: Any) -> Plan:
    """A world with items of one key through one gateway, whose store is away from 4.0 to 9.0."""
    items = [Item(n, "queue", at, (Deed("ok", 0.1),), key="one") for n, at in enumerate(times)]
    known: dict[str, Any] = {"gateways": 1, "spools": True, "slots": 16, "calm": 30.0}
    return plan_of_faults(items, [both(4.0, "gateway1", "node", 5.0), *faults], **(known | options))


#: Items come all the time: before the store goes, while it is away, and as it is back.
ALL_THE_TIME = _brought([3.5 + n / 10 for n in range(90)], [])

#: The gateway dies around each commit of its spool, and just before it brings what is there.
DIES = [
    _brought(
        [4.5 + n / 10 for n in range(12)],
        [Fault(4.0, "point", "gateway1", "", 7.0, f"spool: {when} commit", number=number)],
    )
    for when in ("before", "after")
    for number in (2, 14, 15)
]

#: It dies with what it has spooled, and is back while the store is away; more comes when the store is back.
DIES_FULL = [
    _brought([4.5, 4.6, *(8.8 + n / 100 for n in range(60))], [Fault(at, "kill", "gateway1", seconds=0.5)])
    for at in (7.5, 8.0, 8.3)
]

#: Whoever submitted the only item that is spooled leaves in that moment: a look each 0.2 ms, since a write takes from
#: half a millisecond to three, as chance has it.
LEFT_ALONE = [
    _brought([5.0], [Fault(7.0 + step / 10_000, "reset", "client", "gateway1")], patience=60.0)
    for step in range(2, 52, 2)
]

SCENARIOS: dict[str, list[Plan]] = {
    "a spool drains beside newer submissions of its keys": [ALL_THE_TIME],
    "what is spooled leaves before the queue has it": DIES,
    "what an earlier run spooled is not counted": DIES_FULL,
    "who leaves takes the count of what is spooled along": LEFT_ALONE,
    "what is spooled is brought under another token": DIES,
}
