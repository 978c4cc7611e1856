"""Worlds for the mistakes of bugs/laws.py: see scenarios.py."""

from __future__ import annotations

from .plan import Deed, Fault, Item, Plan
from .scenarios import FAILING, TROUBLED, TWICE, both, ordered, plan_of_faults
from .scenarios_rights import LATE_ROW

#: One runs long, and holds the checkpoint while what fails behind it is tried again and is over.
HELD_UP = plan_of_faults(
    [ordered(0, 1.0, (Deed("ok", 30.0),)), *(ordered(n, 1.5, (Deed("raise", 0.1), Deed("ok", 0.1))) for n in (1, 2))],
    [],
    slots=16,
)

#: Several run when node and scheduler die, and one is over: so it was written how far was handed out.
SEVERAL_RUN = plan_of_faults(
    [*(ordered(n, 1.0, (Deed("ok", 30.0), Deed("ok", 20.0))) for n in range(3)), ordered(3, 1.5, (Deed("ok", 0.1),))],
    [Fault(8.0, "kill", "node", seconds=0.3), Fault(8.0, "kill", "scheduler1", seconds=0.3)],
    slots=4,
)

#: A connection breaks, and cannot be made again for most of a heartbeat.
BLINK = plan_of_faults(
    [ordered(0, 1.0, (Deed("ok", 30.0), Deed("ok", 0.1)))],
    [both(6.0, "node", "scheduler1", 3.8), Fault(6.1, "reset", "node", "scheduler1")],
)

#: One breaks for longer than a heartbeat, in the middle of one.
LONGER = [
    plan_of_faults(
        [Item(n, source, 1.0, (Deed("ok", 60.0), Deed("ok", 0.1))) for n, source in enumerate(("orders", "queue"))],
        [both(at, "node", "scheduler1", 8.9)],
        slots=16,
    )
    for at in (10.0, 12.0, 14.0)
]

#: A worker is welcomed late, and not heard any more by then; its hellos come together, when it is not known any more.
LATE_HELLOS = [
    Plan(
        seed,
        (Item(0, "queue", 20.1, (Deed("crash", 0.04), Deed("ok", 0.1)), delay=2.9),),
        (
            Fault(1.3, "executors", "worker1", what="all", seconds=30.3),
            Fault(30.4, "cut", "scheduler1", "worker1", 9.9),
            Fault(33.9, "cut", "worker1", "scheduler1", 40.0),
        ),
        apart=True,
        workers=1,
        executors=2,
        slots=16,
        calm=75.0,
        patience=60.0,
    )
    for seed in (3, 4, 5)
]

#: An owner dies just after it said that it was told of failures; its last writes land while the next one begins.
LAST_ROWS = plan_of_faults(
    [ordered(n, 0.94 + n / 5, (Deed("raise", 8.0), Deed("ok", 0.1))) for n in range(6)],
    [
        Fault(0.05, "kill", "tailer2", seconds=3.0),
        Fault(9.9, "zombie", "tailer1", "store", 1.4, amount=0.5),
        Fault(10.15, "kill", "tailer1", seconds=60.0),
    ],
    apart=True,
    slots=16,
)

SCENARIOS: dict[str, list[Plan]] = {
    "a session that is begun anew keeps its name": LATE_HELLOS,
    "a tailer that is away for two seconds is forgotten": [BLINK],
    "a schedulers lease leaves no room for a heartbeat that fails": LONGER,
    "a sources lease leaves no room for a heartbeat that fails": LONGER,
    "an owner reads the ledger before it writes its epoch": [LAST_ROWS],
    "the checkpoint takes what an older epoch writes": [LATE_ROW],
    "what was out when its owner died runs beside others": [SEVERAL_RUN],
    "a row is written whatever it is by then": FAILING,
    "an owner starts a copy that it runs already": TWICE,
    "a copys fence is not in its row": [TROUBLED],
    "a row goes when it is over": [HELD_UP],
    "an owner does not tell how far the former one had come": FAILING,
}
