"""Worlds for the mistakes of bugs/files.py: see scenarios.py."""

from __future__ import annotations

from dataclasses import replace

from .plan import Deed, Fault, Item
from .plans import plan_of
from .scenarios import both, plan_of_faults

#: Items of the queue that run for long, and a power cut, while whoever has them cannot reach the store.
POWER_CUTS = [
    plan_of_faults(
        [Item(n, "queue", 1.0 + n / 10, (Deed("ok", 60.0, stubborn=True), Deed("ok", 0.1))) for n in range(4)],
        [both(5.0, "tailer1", "store", 20.0), Fault(6.0, "power", "store", seconds=1.0)],
        apart=True,
        slots=16,
        seed=seed,
    )
    for seed in range(1, 5)
]

#: The writer of the queue ends by itself while its last items end.
WRITER = plan_of_faults(
    [Item(n, "queue", 1.0 + n / 10, (Deed("ok", 0.3),)) for n in range(10)],
    [Fault(2.02, "writer", "node", seconds=20.0, what="queue")],
    slots=16,
    calm=20.0,
)

#: A delay stream goes back with its stores' copy, and has some copies no more that the next node adopts.
WENT_BACK = replace(plan_of(30132), seed=1)

#: The queue's store is away while its claims run out, and back just before.
JUST_BACK = [replace(plan_of(101298), seed=6), replace(plan_of(102379), seed=1)]

SCENARIOS = {
    "leases go on by a clock that began anew": POWER_CUTS,
    "a writer that ended leaves its memory as it was": [WRITER],
    "a claim that is nearly over stays with its tailer": JUST_BACK,
    "what lay beyond the end of a stream that went back is waited for": [WENT_BACK],
}
