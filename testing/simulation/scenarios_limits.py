"""Worlds for the mistakes of bugs/limits.py: quotas over restarts and changes."""

from __future__ import annotations

from .plan import Deed, Fault, Item, LimitApplied, Plan


def _many(count: int, seconds: float, *, stubborn: bool = False, at: float = 1.0, first: int = 0) -> tuple[Item, ...]:
    numbers = range(first, first + count)
    return tuple([Item(n, "queue", at + n / 100, (Deed("ok", seconds, stubborn=stubborn),)) for n in numbers])


def _limited(items: tuple[Item, ...], *limits: LimitApplied, faults: tuple[Fault, ...] = (), seed: int = 1) -> Plan:
    return Plan(seed, items, faults, limits=limits, slots=16, calm=40.0, patience=400.0)


#: A scheduler is started anew while as many run as may, none of which ends when it is told to, and others come.
STUBBORN = _limited(
    _many(4, 9.0, stubborn=True) + _many(8, 9.0, at=6.1, first=4),
    LimitApplied(0.0, 4),
    faults=(Fault(6.0, "kill", "scheduler1", seconds=0.3),),
)

#: The same after a while: workers come back one after the other, within a second.
ONE_BY_ONE = [
    _limited(
        _many(4, 15.0, stubborn=True) + _many(12, 9.0, at=9.0, first=4),
        LimitApplied(0.0, 4),
        faults=(Fault(6.0, "kill", "scheduler1", seconds=4.0),),
        seed=seed,
    )
    for seed in range(1, 7)
]

#: As many run as may, and others wait; ends come one by one.
FULL = _limited(_many(20, 1.5), LimitApplied(0.0, 3))

#: A quota comes, and goes up, while much runs.
CHANGED = _limited(_many(24, 8.0), LimitApplied(0.0, 6), LimitApplied(4.0, 8))

SCENARIOS: dict[str, list[Plan]] = {
    "a batch starts although a limit has less room": [FULL],
    "a scheduler does not wait for its former workers": ONE_BY_ONE,
    "an end is counted twice": [FULL],
    "what runs is not counted anew when quotas change": [CHANGED],
    "what workers still run is not counted": [STUBBORN],
}
