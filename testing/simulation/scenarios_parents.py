"""Worlds for the mistakes of bugs/parents.py: see scenarios.py."""

from __future__ import annotations

from dataclasses import replace

from .plan import Deed, Item, Plan
from .scenarios import plan_of_faults
from .scenarios_engine import IGNORED, TIMEOUT


def _waits(count: int, at: float = 2.0) -> list[Item]:
    """Items that all wait for the one that comes after them."""
    parents = [Item(n, "queue", 1.0 + n / 10, (Deed("ok", 0.1, child=count),) * 3) for n in range(count)]
    return [*parents, Item(count, "queue", at + count / 10, (Deed("ok", 0.1),))]


#: Where one runs at a time, the only one waits.
ONE_WAITS = plan_of_faults(_waits(1), [], workers=1, slots=1, calm=20.0, patience=60.0)

#: As many wait as a worker is given at once.
ALL_WAIT = plan_of_faults(_waits(12), [], workers=1, slots=4, calm=20.0, patience=90.0)

#: A loop is blocked for longer than a lease.
BLOCKED = plan_of_faults(
    [Item(n, "queue", 1.0 + n, (Deed("ok", 26.0, blocks=not n), Deed("ok", 0.1))) for n in range(2)], [], workers=1
)

#: A `def` function does not end when its time is over.
IGNORED_BY_THREADS = replace(IGNORED, threads=True)

#: One runs where another one was over, when the time of that would be.
ONE_AFTER_ANOTHER = plan_of_faults(
    [Item(0, "queue", 1.0, (Deed("ok", 0.2),)), Item(1, "queue", 5.0, (Deed("ok", 2.5), Deed("ok", 0.1)))],
    [],
    workers=1,
    timeout=TIMEOUT,
    threads=True,
)

SCENARIOS: dict[str, list[Plan]] = {
    "a deadline waits for the event loop": [BLOCKED],
    "a run that waits keeps its place": [ONE_WAITS],
    "a scheduler does not hear who waits": [ALL_WAIT],
    "a thread has no timeout": [IGNORED_BY_THREADS],
    "what a thread ran is still timed when it is over": [ONE_AFTER_ANOTHER],
}
