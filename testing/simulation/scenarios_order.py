"""Worlds with order, adoption, waits, gates and outages: each made for a mistake of bugs/order.py, or for none."""

from __future__ import annotations

from dataclasses import replace

from .plan import Deed, Fault, Item, Plan
from .scenarios import both, ordered, plan_of_faults

FAILS = (Deed("raise", 0.5), Deed("ok", 1.0))


def _keyed(n: int, at: float, key: str, deeds: tuple[Deed, ...]) -> Item:
    return Item(n, "orders", at, deeds, key=key)


def _dies(at: float) -> Fault:
    return Fault(at, "kill", "node", seconds=0.3)


#: Items of two keys, some of which fail.
KEYED = plan_of_faults(
    [_keyed(n, 1.0 + n / 10, "ab"[n % 2], FAILS if n % 3 == 0 else (Deed("ok", 1.0),)) for n in range(12)],
    [],
    order="key",
    slots=16,
)

#: A backlog of three keys, and then something urgent of each while one item runs at a time.
URGENT = plan_of_faults(
    [_keyed(n, 1.0, "abc"[n % 3], (Deed("ok", 0.3),)) for n in range(90)]
    + [replace(_keyed(90 + n, 3.0, "cba"[n], ()), priority="interactive") for n in range(3)],
    [],
    order="key",
    urgent=True,
    slots=1,
)

#: Items that expire while an operator pauses the function: some before they ran, others when they are due again.
EXPIRING = plan_of_faults(
    [
        *(replace(ordered(n, 1.0 + n / 5, (Deed("ok", 0.1),)), expires=4.0) for n in range(10)),
        *(replace(ordered(n, 14.0, (Deed("later", 0.1, 2.0), Deed("ok", 0.1))), expires=4.0) for n in range(10, 13)),
    ],
    [Fault(2.0, "pause", seconds=10.0), Fault(15.0, "pause", seconds=10.0)],
    urgent=True,
    patience=60.0,
)

#: A scheduler dies while an item runs that started in time, and expires meanwhile; another one of its key waits.
EXPIRED_AS_IT_RAN = plan_of_faults(
    [replace(_keyed(0, 1.0, "a", (Deed("ok", 40.0), Deed("ok", 0.1))), expires=4.0), _keyed(1, 1.5, "a", ())],
    [Fault(8.0, "kill", "scheduler1", seconds=0.3)],
    apart=True,
    tailers=1,
    order="key",
    urgent=True,
    slots=16,
)

#: An item of a key is adopted, and fails.
ADOPTED_FAILS = plan_of_faults(
    [_keyed(0, 1.0, "a", (Deed("raise", 8.0), Deed("ok", 1.0))), *(_keyed(n, 1.5, "a", ()) for n in range(1, 4))],
    [_dies(5.0)],
    order="key",
    slots=16,
)

#: A tailer dies that could not reach the store: nobody knows that the first item of a key is done, the second runs.
ADOPTED_BEHIND = plan_of_faults(
    [_keyed(n, 1.0 + n / 10, "a", (Deed("ok", lasts), Deed("ok", 0.3))) for n, lasts in enumerate((2.0, 20.0, 0.2))],
    [both(2.5, "tailer1", "store", 2.4), Fault(4.8, "kill", "tailer1", seconds=0.3)],
    apart=True,
    tailers=1,
    order="key",
    slots=16,
)

#: Something runs when the node dies.
ADOPTED = plan_of_faults(
    [ordered(n, 1.0, (Deed("ok", 20.0), Deed("ok", 0.1))) for n in range(3)], [_dies(5.0)], slots=16
)

#: The owner cannot reach the scheduler for just so long that another adopts its stream, with a push on its way.
OUSTED = [
    plan_of_faults(
        [ordered(n, 1.0 + n, (Deed("ok", 30.0, stubborn=True), Deed("ok", 0.1))) for n in range(12)],
        [both(5.0, "tailer1", "scheduler1", seconds)],
        apart=True,
        slots=16,
    )
    for seconds in (11.5, 13.0)
]

#: Items end while their tailer cannot be reached, and another adopts its stream: what it was told is on the wire.
ON_THE_WIRE = plan_of_faults(
    [ordered(n, 1.0, (Deed("ok", 3.2 + n / 10), Deed("ok", 0.1))) for n in range(3)],
    [both(4.0, "tailer1", "scheduler1", 3.5), Fault(4.8, "reset", "tailer1", "scheduler1")],
    apart=True,
    slots=16,
)

_THROTTLED = (Deed("throttled", 0.1, 15.0), Deed("ok", 0.1))

#: A node dies while an item waits because it was throttled.
THROTTLED = plan_of_faults([ordered(0, 1.0, _THROTTLED)], [_dies(5.0)])

#: The same of a copy.
THROTTLED_COPY = plan_of_faults([ordered(0, 1.0, (Deed("raise", 0.1), *_THROTTLED))], [_dies(8.0)])

#: What is due comes before its tailer's clock says so, and nothing else happens.
AHEAD = plan_of_faults(
    [ordered(0, 20.0, (Deed("raise", 0.1), Deed("ok", 0.1)))],
    [Fault(5.0, "jump", "delay", amount=3.5)],
    apart=True,
    patience=60.0,
)

#: Everything fails for a while.
OUTAGE = plan_of_faults(
    [ordered(n, 1.0 + n / 20, (Deed("ok", 0.2),)) for n in range(150)],
    [Fault(0.5, "outage", seconds=50.0)],
    slots=16,
    patience=60.0,  # with its mistake the world goes on until it has none left
)

#: An operator pauses the function and resumes it.
PAUSED = plan_of_faults(
    [ordered(n, 1.0 + n, (Deed("ok", 0.2),)) for n in range(20)],
    [Fault(5.0, "pause", seconds=30.0)],
    patience=60.0,
)

#: Waits of several hops, and a node that dies on the way of each.
LADDER = [
    plan_of_faults(
        [ordered(n, 1.0, (Deed("later", 0.1, 97.0 + n), Deed("ok", 0.1))) for n in range(3)],
        [_dies(at), _dies(at + 31.0)],
        calm=110.0,
    )
    for at in (8.0, 33.0, 62.0)
]

#: What died and let its key go on is put back to before its letter, while what it let go waits for a slot.
DIED_BEFORE = Plan(
    1,
    (
        Item(0, "orders", 1.0, (Deed("fatal", 1.0),), key="a"),
        Item(1, "orders", 1.1, (Deed("ok", 0.1),), key="a"),
        Item(2, "queue", 1.2, (Deed("ok", 0.7),)),
        Item(3, "queue", 1.2, (Deed("ok", 0.8),)),
    ),
    (
        Fault(1.5, "copy", "store", what="queue state delay"),
        Fault(3.0, "restore", "store", what="queue state delay", seconds=0.1),
    ),
    apart=True,
    tailers=1,
    workers=1,
    slots=1,
    order="key",
)

SCENARIOS: dict[str, list[Plan]] = {
    "two items of a key are out at once": [KEYED],
    "in order what failed is parked": [KEYED],
    "a line loses its second item": [ADOPTED_FAILS],
    "an item that was lifted stays in its old place too": [URGENT],
    "what expired is passed without its letter": [EXPIRING],
    "a parked item forgets its deadline": [EXPIRING],
    "an item that was lost is over at its deadline though it may run": [EXPIRED_AS_IT_RAN],
    "what was adopted is in no order": [ADOPTED_FAILS],
    "heads do not wait until what was adopted is read": [ADOPTED_BEHIND],
    "what was adopted behind another goes on": [ADOPTED_BEHIND],
    "an adopted item is forgotten": [ADOPTED],
    "adoption without refusing the old epoch": OUSTED,
    "an outcome on the wire goes to nobody": [ON_THE_WIRE],
    "a restart forgets when a throttled item is due": [THROTTLED],
    "a restart forgets when a throttled copy is due": [THROTTLED_COPY],
    "a time that passes wakes nobody": [AHEAD],
    "failures in an outage are charged": [OUTAGE],
    "a frozen function is never tried": [OUTAGE],
    "a gate that opens is not told": [PAUSED],
}
#: Worlds in which nothing may go wrong, made for no mistake in particular.
OTHERS = [*LADDER, DIED_BEFORE]
