"""Worlds made for one mistake each: the faults that it takes to show, at their times. Without the mistake nothing is
wrong.

Unless a plan says otherwise worker2 is down for its first 15 seconds, so that the first items run in worker1. A
worker says hello 0.3 seconds after it started and asks for its leases again every 5 seconds from then on.
"""

from __future__ import annotations

from typing import Any

from .plan import Deed, Fault, Item, Plan

#: A function that runs long and does not end when it is told to; and one that ends soon, when it runs again.
LONG = (Deed("ok", 100.0, stubborn=True), Deed("ok", 0.1))
_LATER = Fault(0.1, "kill", "worker2", seconds=15.0)


def plan_of_faults(items: list[Item], faults: list[Fault], **options: Any) -> Plan:
    """A world of these items and faults, and a second worker that comes later."""
    known: dict[str, Any] = {"seed": 1, "workers": 2, "calm": 90.0}
    return Plan(items=tuple(items), faults=(_LATER, *faults), **(known | options))


def ordered(n: int = 0, at: float = 1.0, deeds: tuple[Deed, ...] = LONG) -> Item:
    """An item of the stream."""
    return Item(n, "orders", at, deeds)


def _queued(n: int = 0, at: float = 1.0, deeds: tuple[Deed, ...] = LONG) -> Item:
    return Item(n, "queue", at, deeds)


def both(at: float, one: str, other: str, seconds: float) -> Fault:
    """A fault that cuts two hosts off from one another."""
    return Fault(at, "both", one, other, seconds)


#: A worker that is cut off goes on until its lease is over, and not a moment longer.
CUT_OFF = plan_of_faults([ordered()], [both(3.0, "worker1", "scheduler1", 80.0)])

#: Worlds like the former, with clocks as far apart as they may be, and the cut at different times of a heartbeat.
DRIFTING = [
    plan_of_faults(
        [ordered()],
        [both(3.0 + step * 0.1, "worker1", "scheduler1", 80.0)],
        rates={"worker1": 0.99, "scheduler1": 1.01, "node": 1.01},
    )
    for step in range(0, 26, 2)
]

#: Two tailers whose items run in one process; one of them dies, and its claims end.
TWO_LEASES = plan_of_faults(
    [_queued(n, 1.0 + n / 10) for n in range(8)],
    [Fault(4.0, "kill", "tailer1", seconds=60.0)],
    apart=True,
    slots=16,
)

#: A process that stands still between computing its timer and setting it, in a worker that is cut off.
STALLED = plan_of_faults(
    [ordered()],
    [Fault(0.9, "executors", "worker1", what="stall", seconds=10.0), both(1.2, "worker1", "scheduler1", 80.0)],
)

#: The node dies and cannot reach the scheduler until it may take its stream again.
NODE_AWAY = plan_of_faults(
    [ordered(), _queued(1)],
    [Fault(5.0, "kill", "node", seconds=0.3), both(5.01, "node", "scheduler1", 37.4)],
    slots=16,
)

#: A tailer cannot reach the store for so long that its claims are given to another.
STORE_AWAY = plan_of_faults(
    [_queued(n, 1.0 + n / 10) for n in range(10)],
    [both(5.0, "tailer1", "store", 75.0)],
    apart=True,
    slots=16,
    calm=100.0,
)

#: The same, and what failed is settled long after it was given to another.
LATE_SETTLEMENT = plan_of_faults(
    [_queued(n, 1.0 + n / 10, (Deed("raise", 8.0), Deed("ok", 30.0), Deed("ok", 0.1))) for n in range(10)],
    [both(5.0, "tailer1", "store", 42.0)],
    apart=True,
    slots=16,
)

#: The answer to a worker's request for its leases is late, and nothing that it sends after it arrives.
LATE_RENEWAL = plan_of_faults(
    [ordered()],
    [
        Fault(5.0, "cut", "scheduler1", "worker1", 5.0),
        Fault(5.6, "cut", "worker1", "scheduler1", 80.0),
        Fault(10.5, "cut", "scheduler1", "worker1", 80.0),
    ],
)

#: The same of an assignment.
LATE_ASSIGNMENT = plan_of_faults(
    [ordered()],
    [
        Fault(0.9, "cut", "scheduler1", "worker1", 8.0),
        Fault(1.2, "cut", "worker1", "scheduler1", 80.0),
        Fault(9.2, "cut", "scheduler1", "worker1", 80.0),
    ],
)

#: A worker is back just before the kernel ends what it was told to end.
BACK_IN_TIME = plan_of_faults([ordered()], [both(3.0, "worker1", "scheduler1", 13.7)])

#: The scheduler is replaced by a fresh one while something runs.
NEW_SCHEDULER = plan_of_faults([ordered(), _queued(1)], [Fault(3.0, "kill", "scheduler1", seconds=0.2)])

#: The same, several times, with more work than fits.
NEW_SCHEDULERS = plan_of_faults(
    [ordered(n, 1.0, (Deed("ok", 3.0),)) for n in range(200)],
    [Fault(at, "kill", "scheduler1", seconds=0.2) for at in (3.0, 33.0, 63.0, 93.0)],
    slots=1,
    calm=120.0,
    patience=500.0,
)

#: An outcome is on its way when the connection breaks.
BROKEN_OFF = plan_of_faults(
    [ordered(0, 1.0, (Deed("ok", 1.0),))],
    [Fault(1.5, "cut", "worker1", "scheduler1", 3.0), Fault(3.0, "reset", "worker1", "scheduler1")],
)

#: The clock goes back while something runs that is lost then.
CLOCK_BACK = plan_of_faults(
    [_queued()],
    [Fault(5.0, "jump", "node", amount=-10.0), Fault(10.0, "executors", "worker1", what="kill")],
)

#: A tailer cannot reach its store for a while, and another one can.
ONE_CUT_OFF = plan_of_faults(
    [_queued(n, 1.0 + n / 10, (Deed("ok", 40.0), Deed("ok", 0.1))) for n in range(4)],
    [both(2.5, "tailer1", "store", 20.0)],
    apart=True,
    tailers=2,
    slots=16,
)

#: Nothing goes wrong but the items themselves.
TROUBLED = plan_of_faults(
    [
        *(
            ordered(n, 1.0 + n, (Deed("raise", 0.1), Deed("throttled", 0.1, 5.0), Deed("later", 0.1, 9.0)))
            for n in range(6)
        ),
        *(
            _queued(n, 1.0 + n, (Deed("raise", 0.1), Deed("throttled", 0.1, 5.0), Deed("later", 0.1, 9.0)))
            for n in range(6, 12)
        ),
        ordered(12, 3.0, (Deed("fatal"),)),
        _queued(13, 3.0, (Deed("fatal"),)),
        _queued(14, 3.0, (Deed("ok", 60.0),)),
    ],
    [Fault(0.2, "kill", "worker2", seconds=0.1)],
    slots=16,
)

#: Node and scheduler die together: nobody can say what still runs.
NODE_AND_SCHEDULER = plan_of_faults(
    [ordered()], [Fault(5.0, "kill", "node", seconds=0.3), Fault(5.0, "kill", "scheduler1", seconds=0.2)]
)

#: The node dies at some time after an item was parked.
NODE_DIES = [
    plan_of_faults([ordered(0, 1.0, (Deed("raise", 0.1),))], [Fault(2.0 + step * 0.2, "kill", "node", seconds=0.3)])
    for step in range(8)
]

#: An item that fails again and again, and a node that dies after each commit in turn.
FAILING = [
    plan_of_faults(
        [ordered(0, 1.0, (Deed("raise", 0.1), Deed("later", 0.1, 20.0), Deed("ok", 0.1)))],
        [Fault(0.5, "point", "node", what=f"{file}: after commit", number=number, seconds=40.0)],
    )
    for file in ("state", "delay")
    for number in range(1, 25)
]

#: The same moments around the append of an item whose second attempt is long: whoever runs it from its source as well
#: has it twice at once.
APPENDED = [
    plan_of_faults(
        [ordered(0, 1.0, (Deed("raise", 0.1), Deed("ok", 30.0), Deed("ok", 0.1)))],
        [Fault(0.5, "point", "node", what=f"{file}: after commit", number=number, seconds=40.0)],
    )
    for file, number in (("delay", 1), ("state", 5), ("state", 4), ("state", 6))
]

#: Node and scheduler die while the copy of a failed item runs, or while its source's item does.
COPY_RUNS = [
    plan_of_faults(
        [ordered(0, 1.0, (Deed("raise", 0.1), Deed("ok", 30.0), Deed("ok", 0.1)))],
        [Fault(8.0, "kill", "node", seconds=0.3), Fault(8.0, "kill", "scheduler1", seconds=0.3)],
    ),
    plan_of_faults(
        [ordered(0, 1.0, (Deed("ok", 30.0), Deed("ok", 0.1))), ordered(1, 1.5, (Deed("ok", 0.1),))],
        [Fault(8.0, "kill", "node", seconds=0.3), Fault(8.0, "kill", "scheduler1", seconds=0.3)],
        slots=4,
    ),
]

#: Answers of the delay service are lost while an item is parked, so that it is parked twice.
TWICE = [
    plan_of_faults(
        [ordered(0, 1.0, (Deed("raise", 0.1), deed, Deed("ok", 0.1)))],
        [Fault(1.05, "weather", what="drop_reply", amount=0.5, seconds=0.6)],
        apart=True,
        seed=seed,
    )
    for seed in (3, 12)
    for deed in (Deed("ok", 10.0), Deed("later", 0.01, 20.0))
]

#: The same for longer, and worse: a copy of the first failure comes while the second one waits.
OLD_COPY = [
    plan_of_faults(
        [ordered(0, 1.0, (Deed("raise", 0.1), Deed("later", 0.01, 20.0), Deed("ok", 0.1)))],
        [Fault(1.05, "weather", what="drop_reply", amount=0.7, seconds=1.2)],
        apart=True,
        seed=seed,
    )
    for seed in (5, 10)
]

#: By the name of the bug: the worlds in which it shows.
SCENARIOS: dict[str, list[Plan]] = {
    "no kernel timer": [CUT_OFF],
    "timer at the latest deadline": [TWO_LEASES],
    "timer not shortened when set late": [STALLED],
    "worker granted more than the scheduler holds": [NODE_AWAY],
    "scheduler granted more than the tailer holds": [STORE_AWAY],
    "kill margin and drift left out": DRIFTING,
    "worker counts a renewal from its receipt": [LATE_RENEWAL],
    "worker counts its first lease from its receipt": [LATE_ASSIGNMENT],
    "supervisor reports what it did not reap": [BACK_IN_TIME],
    "scheduler dispatches again by itself": [CUT_OFF],
    "scheduler calls a silent worker lost at once": [CUT_OFF],
    "tailer hands out again without waiting": [NEW_SCHEDULER],
    "unacknowledged frames are not sent again": [BROKEN_OFF],
    "credit leaks at a reconnect": [NEW_SCHEDULERS],
    "queue accepts a stale fence": [LATE_SETTLEMENT],
    "queue fences go back with the clock": [CLOCK_BACK],
    "queue ends leases early": [ONE_CUT_OFF],
    "queue ignores due times": [TROUBLED],
    "queue forgets the letter of what it buries": [TROUBLED],
    "queue claims are not renewed": [TROUBLED],
    "frontier is off by one": [TROUBLED],
    "settled before it is parked": [TROUBLED],
    "a held item is forgotten": [TROUBLED],
    "a throttled item does not wait": [TROUBLED],
    "takeover without waiting": [NODE_AND_SCHEDULER],
    "fences start again in a new epoch": [NODE_AWAY],
    "a lost session forgets its items": [NEW_SCHEDULER],
    "a park is not written": [TROUBLED],
    "mover passes before it appends": NODE_DIES,
    "n of a copy is ignored": OLD_COPY,
    "a copy starts whatever its row says": TWICE,
    "a copy that finds running settles": COPY_RUNS,
    "a copy that finds a later parking settles": FAILING,
    "parked before its row": FAILING,
    "a position with a row runs from its source": APPENDED,
    "what is parking is not appended again": FAILING,
    "a suspicion bars its item": COPY_RUNS,
    "rows are never swept": [TROUBLED],
}
