"""Worlds for the mistakes of bugs/verdicts.py: see scenarios.py."""

from __future__ import annotations

from .plan import Deed, Fault, Item, Plan

_SOURCES = ("orders", "queue")


def _items(count: int, at: float, *deeds: Deed) -> tuple[Item, ...]:
    return tuple(Item(n, _SOURCES[n % 2], at + n / 50, deeds) for n in range(count))


#: Workers of two versions, since one was started again, and items for each of them and for neither.
ROLLED = Plan(
    1,
    tuple(
        Item(n, _SOURCES[n % 2], 3.0 + n / 10, (Deed("ok", 0.1),), fits=("old", "new", "old", "new", "neither")[n % 5])
        for n in range(20)
    ),
    (Fault(0.2, "kill", "worker2", seconds=0.2),),
    rolled=True,
    calm=12.0,
    patience=20.0,
)

_LOCK = Deed("ok", 100.0, locks=True)
#: Functions that keep the interpreter lock for ever, beside others, and one that keeps it for as long as it may.
LOCKING = Plan(
    3,
    (
        *(Item(n, _SOURCES[n % 2], 1.0 + n / 10, (Deed("ok", 3.0),) * 4) for n in range(10)),
        *(Item(n, _SOURCES[n % 2], 2.5, (_LOCK,) * 30) for n in (10, 11)),
    ),
    slots=16,
    calm=4.0,
    patience=120.0,
)
LOCKING_IN_TIME = Plan(
    1,
    tuple(Item(n, "orders", 1.0 + n / 10, (Deed("ok", 9.0, locks=n == 5),)) for n in range(6)),
    workers=1,
    slots=16,
    calm=20.0,
)

#: Many that ask for another try once, as those do that poll.
POLLING = Plan(1, _items(80, 1.0, Deed("later", 0.1, 2.0), Deed("ok", 0.1)), slots=8, calm=4.0, patience=10.0)

#: Many of the queue that fail the first time, and are well the second one.
COLD = Plan(
    1,
    tuple(Item(n, "queue", 1.0 + n / 70, (Deed("raise", 0.1), Deed("ok", 0.1))) for n in range(70)),
    slots=8,
    calm=4.0,
    patience=60.0,
)

SCENARIOS: dict[str, list[Plan]] = {
    "what one version does not take is fatal at once": [ROLLED],
    "who keeps the interpreter lock is no suspect": [LOCKING],
    "whoever ran beside a kept lock is a suspect with others": [LOCKING],
    "an executor is ended as soon as it is silent": [LOCKING_IN_TIME],
    "who asks for another try seems to be broken": [POLLING],
    "retries that are due are no probes": [COLD],
    "what is well the second time says nothing": [COLD],
    "what every version refused is handed back": [ROLLED],
    "a version that refused is asked again": [ROLLED],
}
BY = {
    "what one version does not take is fatal at once": "fate",
    "who keeps the interpreter lock is no suspect": "unfinished",
    "whoever ran beside a kept lock is a suspect with others": "fate",
    "an executor is ended as soon as it is silent": "unexplained",
    "what every version refused is handed back": "version",
    "who asks for another try seems to be broken": "unfinished",
    "retries that are due are no probes": "unfinished",
    "what is well the second time says nothing": "unfinished",
    "a version that refused is asked again": "version",
}
