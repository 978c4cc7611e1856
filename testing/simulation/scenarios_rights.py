"""Worlds for the mistakes of bugs/rights.py: see scenarios.py. `BY` says which promise finds each, alone."""

from __future__ import annotations

from .plan import Deed, Fault, Item, Plan
from .scenarios import CUT_OFF, TROUBLED, TWICE, both, ordered, plan_of_faults

#: An executor stands still while its new deadline is on its way, and its worker is cut off by then.
PASSED_ON_LATE = plan_of_faults(
    [ordered()],
    [
        Fault(5.0, "executors", "worker1", what="freeze", seconds=1.8),
        both(6.7, "worker1", "scheduler1", 80.0),
    ],
)

#: A tailer cannot reach the store, and can reach its scheduler.
HELD_LESS = plan_of_faults(
    [Item(n, "queue", 1.0 + n / 10, (Deed("ok", 60.0), Deed("ok", 0.1))) for n in range(4)],
    [both(5.0, "tailer1", "store", 60.0)],
    apart=True,
    tailers=1,
    slots=16,
    seed=2,
)

#: Nothing goes wrong, and something takes longer than a heartbeat.
LONG_AND_WELL = plan_of_faults([ordered(0, 1.0, (Deed("ok", 12.0),))], [])

#: A connection breaks, and is there again at once.
BROKEN = plan_of_faults([ordered(0, 1.0, (Deed("ok", 12.0),))], [Fault(6.0, "reset", "worker1", "scheduler1")])

#: An owner without a rival cannot reach the store for longer than it has its stream.
LAPSED = plan_of_faults(
    [ordered(0, 1.0, (Deed("ok", 1.0),))], [both(5.0, "tailer1", "store", 50.0)], apart=True, tailers=1
)

#: An owner dies whose last writes land when another one has its stream: it was told of failures just then.
LATE_ROW = plan_of_faults(
    [ordered(n, 1.0 + n / 5, (Deed("raise", 8.0), Deed("ok", 0.1))) for n in range(6)],
    [
        Fault(0.05, "kill", "tailer2", seconds=3.0),
        Fault(8.9, "zombie", "tailer1", "store", 25.0, amount=1.5),
        Fault(10.4, "kill", "tailer1", seconds=60.0),
    ],
    apart=True,
    slots=16,
)

#: A write of the checkpoint lands after those that followed it.
LATE_CHECKPOINT = plan_of_faults(
    [ordered(n, 1.0 + n / 2, (Deed("ok", 0.1),)) for n in range(40)],
    [Fault(6.05, "zombie", "tailer1", "store", 8.0, amount=0.4)],
    apart=True,
    tailers=1,
    slots=16,
)

#: An item fails, and the write of its row lands once more when it is over and its checkpoint has passed it.
LATE_PARKING = plan_of_faults(
    [ordered(n, 1.0 + n, (Deed("raise", 0.1), Deed("ok", 0.1))) for n in range(6)],
    [Fault(3.05, "zombie", "tailer1", "store", 15.0, amount=0.4)],
    apart=True,
    tailers=1,
    slots=16,
)

#: A clock is set back before the first item fails: the stream in which it comes due has a lower epoch than its own.
SET_BACK = plan_of_faults(
    [ordered(0, 6.0, (Deed("raise", 0.1), Deed("ok", 0.1)))], [Fault(5.0, "jump", "node", amount=-60.0)]
)

#: A node starts again when its items are done, and their rows gone.
RESTARTED = plan_of_faults(
    [ordered(n, 1.0 + n / 10, (Deed("ok", 0.1),)) for n in range(4)], [Fault(10.0, "kill", "node", seconds=0.3)]
)

#: What runs is cancelled, and fails all the same.
TAKEN_BACK = plan_of_faults(
    [Item(0, "queue", 1.0, (Deed("raise", 8.0, stubborn=True), Deed("ok", 0.1)), cancel=2.0)], []
)

SCENARIOS: dict[str, list[Plan]] = {
    "the timer rings a second late": [CUT_OFF],
    "deadlines in a host travel as durations": [PASSED_ON_LATE],
    "a scheduler is granted a little more": [HELD_LESS],
    "a lease is shorter than a heartbeat": [LONG_AND_WELL],
    "a connection that breaks ends its session": [BROKEN],
    "an epoch is resumed after its lease": [LAPSED],
    "the ledger takes what an older epoch writes": [LATE_ROW],
    "a checkpoint goes back with a late write": [LATE_CHECKPOINT],
    "a running row names no epoch": TWICE,
    "an owner begins before its checkpoint": [RESTARTED],
    "a row that is over and passed stays": [TROUBLED],
    "a row is made below the checkpoint": [LATE_PARKING],
    "a copys fence is the next of its epoch": [SET_BACK],
    "one item of credit is not given back": [TROUBLED],
    "what is to be cancelled is tried again": [TAKEN_BACK],
}

#: The promise that finds it, where no other one does.
BY = {
    "the timer rings a second late": "beyond its lease",
    "deadlines in a host travel as durations": "beyond its lease",
    "a scheduler is granted a little more": "granted",
    "a lease is shorter than a heartbeat": "unexplained",
    "a connection that breaks ends its session": "unexplained",
    "an epoch is resumed after its lease": "resumed",
    "an owner begins before its checkpoint": "started",
    "a row that is over and passed stays": "the checkpoint",
    "a row is made below the checkpoint": "ledger",
    "one item of credit is not given back": "left over",
    "what is to be cancelled is tried again": "started",
}
