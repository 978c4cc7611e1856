"""Worlds for the mistakes of bugs/kept.py: see scenarios.py."""

from __future__ import annotations

from .clones import COPY, NODE
from .plan import Deed, Fault, Item, Plan
from .retention_check import DAY
from .scenarios import both, plan_of_faults

_OVER = [Item(n, ("orders", "queue")[n % 2], 1.0 + n / 10, (Deed("ok", 0.1),)) for n in range(12)]

#: A wall clock that is days ahead for a moment, when everything has ended.
GLITCH = plan_of_faults(
    _OVER, [Fault(20.0, "jump", "node", amount=30 * DAY), Fault(35.0, "jump", "node", amount=-30 * DAY)], calm=50.0
)

#: The same at a start, in the same run of the machine or after a power cut.
AT_START = [
    plan_of_faults(
        _OVER,
        [
            Fault(20.0, kind, "node", seconds=6.0),
            Fault(23.0, "jump", "node", amount=30 * DAY),
            Fault(45.0, "jump", "node", amount=-30 * DAY),
        ],
        calm=60.0,
    )
    for kind in ("kill", "power")
]

#: Records that nobody may run for longer than they are kept.
UNREAD = plan_of_faults(
    [Item(n, "orders", 1.0 + n, (Deed("ok", 0.1),)) for n in range(12)],
    [Fault(4.0, "pause", seconds=40.0)],
    log_retention=10.0,
    calm=60.0,
)


def _cloned(*faults: Fault) -> Plan:
    return Plan(1, (), faults, workers=1, clones=True, rates={NODE: 0.99, COPY: 1.01}, calm=60.0, patience=60.0)


#: A copy of a node's folder is started beside it, and again and again, also while the server cannot be reached.
CLONED = _cloned(
    Fault(10.0, "clone", COPY, NODE),
    both(20.0, NODE, "server", 12.0),
    Fault(40.0, "kill", NODE, seconds=0.3),
)

#: A copy of before the node's last run is started when that has ended for good.
LEFT_BEHIND = _cloned(
    Fault(10.0, "clone", COPY, NODE, seconds=25.0),
    Fault(12.0, "kill", NODE, seconds=0.3),
    Fault(30.0, "kill", NODE, seconds=40.0),
)

#: A folder is moved to another machine after its node died.
MOVED = _cloned(
    Fault(12.0, "kill", NODE, seconds=600.0),
    Fault(13.0, "clone", COPY, NODE, number=1),
)

SCENARIOS: dict[str, list[Plan]] = {
    "what is old goes by the wall clock": [GLITCH],
    "a start believes its wall clock": AT_START,
    "what is old goes whether it was read or not": [UNREAD],
    "a binding that is held is taken": [CLONED],
    "a copy that was left behind goes on": [LEFT_BEHIND],
    "a binding that nobody renews stays held": [MOVED],
}
BY = {
    "what is old goes by the wall clock": "gone",
    "what is old goes whether it was read or not": "trimmed",
    "a binding that is held is taken": "bound",
    "a copy that was left behind goes on": "bound",
    "a binding that nobody renews stays held": "unfinished",
}
