"""Worlds with dead letters that an operator redrives: each made for a mistake of bugs/redrives.py."""

from __future__ import annotations

from typing import Any

from .plan import Deed, Fault, Item, Plan, Redrive
from .scenarios import ordered, plan_of_faults

_FATAL = Deed("fatal", 0.1)


def _dying(times: int, faults: list[Fault], *redrives: Redrive, **options: Any) -> Plan:
    """A world of items of the queue and of the stream that die so often before they succeed."""
    items = [Item(n, "queue", 2.0 + n / 10, (_FATAL,) * times) for n in range(3)]
    items += [ordered(n, 2.0 + n / 10, (_FATAL,) * times) for n in range(3, 6)]
    return plan_of_faults(items, faults, gateways=1, slots=16, redrives=redrives, **options)


#: Nothing goes wrong but what dies.
REDRIVEN = _dying(2, [], Redrive(6.0), Redrive(12.0), Redrive(18.0))

#: The gateway dies at some time of a request that nobody makes again.
CUT_SHORT = [
    _dying(1, [Fault(6.0 + step * 0.003, "kill", "gateway1", seconds=2.0)], Redrive(6.0, once=True), calm=30.0)
    for step in range(1, 10)
]

#: The node dies after it wrote the letter of an item, before its queue knows that the item is over; the operator asks
#: while the item's lease runs. The item succeeds when it runs again.
BURIED_ALIVE = [
    plan_of_faults(
        [Item(0, "queue", 2.0, (_FATAL,))],
        [Fault(1.9, "point", "node", what="state: after commit", number=number, seconds=1.0)],
        gateways=1,
        redrives=(Redrive(8.0),),
    )
    for number in range(1, 5)
]

#: An item dies, the next one of its key runs, and the operator asks meanwhile; the item that is redriven runs for long.
_A_KEY = [
    Item(0, "orders", 2.0, (_FATAL, Deed("ok", 20.0), Deed("ok", 0.1)), key="a"),
    Item(1, "orders", 2.5, (Deed("ok", 8.0),), key="a"),
    Item(2, "orders", 14.0, (), key="a"),
]
IN_LINE = plan_of_faults(_A_KEY, [], gateways=1, slots=16, redrives=(Redrive(6.0),), order="key")

#: Its tailer dies while it runs, and its scheduler lives on.
ADOPTED_IN_LINE = plan_of_faults(
    _A_KEY,
    [Fault(18.0, "kill", "tailer1", seconds=0.3)],
    gateways=1,
    slots=16,
    redrives=(Redrive(6.0),),
    order="key",
    apart=True,
    tailers=1,
)

SCENARIOS: dict[str, list[Plan]] = {
    "a letter goes before its workload is stored": [REDRIVEN],
    "a redrive that is made again makes another workload": [REDRIVEN],
    "a redrive does not ask whether its workload has ended": BURIED_ALIVE,
    "what is redriven forgets its past": [REDRIVEN],
    "what a redrive left in the middle is not finished": CUT_SHORT,
    "what is redriven in a stream runs beside its key": [IN_LINE],
    "what is redriven in a stream has no letter while it waits": [IN_LINE],
    "what is redriven and adopted is not read by its new owner": [ADOPTED_IN_LINE],
}
