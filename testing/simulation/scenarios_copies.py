"""Worlds for the mistakes of bugs/copies.py: see scenarios.py. `BY` says which promise finds each, alone."""

from __future__ import annotations

from dataclasses import replace

from .plan import Deed, Fault, Plan
from .scenarios import TROUBLED, ordered, plan_of_faults

FAILS_ONCE = (Deed("raise", 0.1), Deed("ok", 0.1))

#: Items fail one after the other, and some writes of the checkpoint of what is due land after those that followed it.
LATE_DUE_CHECKPOINT = plan_of_faults(
    [ordered(n, 1.0 + n / 2, FAILS_ONCE) for n in range(40)],
    [Fault(at, "zombie", "tailer1", "store", 6.0, amount=1.2) for at in (8.0, 16.0)],
    apart=True,
    tailers=1,
    slots=16,
)


def _put_back(items: int, copied: float, restored: float) -> Plan:
    """A world in which the stores of a delay service and of owners that live on are put back from a copy."""
    return plan_of_faults(
        [ordered(n, 1.0 + n / 2, FAILS_ONCE) for n in range(items)],
        [
            Fault(copied, "copy", "store", what="queue state delay"),
            Fault(restored, "restore", "store", what="queue state delay", seconds=0.1),
        ],
        apart=True,
        tailers=1,
        slots=16,
    )


#: A rung has passed more by then, which it forgets only when it rests.
MOVED_SINCE = _put_back(40, 6.0, 8.0)
#: A copy that came due has ended by then, and the stream of what is due is told a second later.
DUE_SINCE = replace(_put_back(2, 3.8, 4.3), seed=3)

SCENARIOS = {
    "a copy that runs is passed": [TROUBLED],
    "a rung is trimmed before it commits": [TROUBLED],
    "a rung is trimmed without asking": [MOVED_SINCE],
    "what is due is trimmed without asking": [DUE_SINCE],
    "the checkpoint of what is due goes back with a late write": [LATE_DUE_CHECKPOINT],
}

#: The promise that finds it, where no other one does.
BY = {
    "a rung is trimmed before it commits": "trimmed",
    "a rung is trimmed without asking": "trimmed",
    "what is due is trimmed without asking": "trimmed",
}
