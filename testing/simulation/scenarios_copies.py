"""Worlds for the mistakes of bugs_copies.py: see scenarios.py. `BY` says which promise finds each, alone."""

from __future__ import annotations

from .plan import Deed, Fault
from .scenarios import TROUBLED, ordered, plan_of_faults

#: Items fail one after the other, and some writes of the checkpoint of what is due land after those that followed it.
LATE_DUE_CHECKPOINT = plan_of_faults(
    [ordered(n, 1.0 + n / 2, (Deed("raise", 0.1), Deed("ok", 0.1))) for n in range(40)],
    [Fault(at, "zombie", "tailer1", "store", 6.0, amount=1.2) for at in (8.0, 16.0)],
    apart=True,
    tailers=1,
    slots=16,
)

SCENARIOS = {
    "a copy that runs is passed": [TROUBLED],
    "a rung is trimmed before it commits": [TROUBLED],
    "the checkpoint of what is due goes back with a late write": [LATE_DUE_CHECKPOINT],
}

#: The promise that finds it, where no other one does.
BY = {"a rung is trimmed before it commits": "trimmed"}
