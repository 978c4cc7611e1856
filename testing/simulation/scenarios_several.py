"""Worlds with several schedulers behind one address, and several gateways: each made for a mistake of bugs/several.py,
or for none. The second tailer comes late, so that the first one owns the stream."""

from __future__ import annotations

from typing import Any

from .plan import Deed, Fault, Item, Plan
from .scenarios import both, ordered, plan_of_faults


def _moves(at: float, tailer: str, one: str, other: str) -> list[Fault]:
    """Faults by which a tailer loses its connection to one scheduler, and finds another one."""
    return [Fault(at, "steer", other), Fault(at + 0.01, "reset", tailer, one)]


def _fronted(items: list[Item], faults: list[Fault], late: float = 6.0, **options: Any) -> Plan:
    """A world with two tailers before two schedulers, of which they find the first one."""
    begin = [Fault(0.0, "steer", "scheduler1"), Fault(0.05, "kill", "tailer2", seconds=late)]
    known: dict[str, Any] = {"apart": True, "front": True, "schedulers": 2, "slots": 16}
    return plan_of_faults(items, [*begin, *faults], **(known | options))


#: A tailer that went back to the scheduler it came from when as much had been said there as at the other one.
THERE_AND_BACK = plan_of_faults(
    [ordered(n, 1.0 + n * 0.4, (Deed("ok", 3.0),)) for n in range(30)],
    [
        Fault(0.0, "steer", "scheduler1"),
        *_moves(3.0, "node", "scheduler1", "scheduler2"),
        *_moves(5.0, "node", "scheduler2", "scheduler1"),
    ],
    schedulers=2,
    front=True,
)

#: What runs was pushed to the first scheduler; its tailer went to the second one and died.
LEFT_AND_DIED = _fronted(
    [ordered()], [*_moves(5.0, "tailer1", "scheduler1", "scheduler2"), Fault(6.5, "kill", "tailer1", seconds=60.0)]
)

#: The same, and the first scheduler cannot be asked.
LEFT_AND_CUT_OFF = _fronted(
    [ordered()],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        both(5.5, "tailer2", "scheduler1", 60.0),
        Fault(6.5, "kill", "tailer1", seconds=60.0),
    ],
)

#: The same, and another process answers for the first scheduler.
LEFT_AND_REPLACED = _fronted(
    [ordered()],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(6.0, "kill", "scheduler1", seconds=0.2),
        Fault(6.5, "kill", "tailer1", seconds=60.0),
    ],
)

#: A tailer that came back to the first scheduler for a moment, in a new session, and left it again.
LEFT_AGAIN = _fronted(
    [ordered()],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        *_moves(7.0, "tailer1", "scheduler2", "scheduler1"),
        *_moves(8.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(14.0, "kill", "tailer1", seconds=60.0),
    ],
)

#: The heir, which took the stream at once, dies as well, and the first tailer is back.
LEFT_TWICE = _fronted(
    [ordered()],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(6.5, "kill", "tailer1", seconds=4.0),
        Fault(10.0, "kill", "tailer2", seconds=60.0),
    ],
)

#: What runs was pushed to the second scheduler; its tailer died, and the heir is with the first one.
WENT_AND_DIED = _fronted(
    [ordered(0, 1.0, (Deed("ok", 1.0),)), ordered(1, 6.0)],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(6.5, "steer", "scheduler1"),
        Fault(8.0, "kill", "tailer1", seconds=60.0),
    ],
    late=7.0,
)

#: The same, and items run at both of them, which number what they give to an heir alike.
RUNS_AT_BOTH = _fronted(
    [ordered(0, 1.0, (Deed("ok", 20.0),)), ordered(1, 6.0, (Deed("ok", 50.0),))],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(6.5, "steer", "scheduler1"),
        Fault(8.0, "kill", "tailer1", seconds=60.0),
    ],
    late=7.0,
)

#: What runs was pushed to the first scheduler; its tailer went to the second one and died. The heir goes on with it
#: beyond every lease that the tailer had granted, and dies as well; under the next one that scheduler dies.
SIDES_END = _fronted(
    [ordered()],
    [
        *_moves(5.0, "tailer1", "scheduler1", "scheduler2"),
        Fault(6.5, "kill", "tailer1", seconds=4.0),
        Fault(45.0, "kill", "tailer2", seconds=60.0),
        Fault(60.0, "kill", "scheduler1", seconds=0.2),
    ],
)

#: A tailer goes to another scheduler while its heir asks the first one, whose answer is slow.
ASKED_TOO_EARLY = _fronted(
    [ordered(n, 9.0 + n / 10) for n in range(30)],
    [
        Fault(10.0, "cut", "scheduler1", "tailer2", 0.95),
        both(10.0, "tailer1", "store", 0.7),
        *_moves(10.0, "tailer1", "scheduler1", "scheduler2"),
    ],
)

#: Each scheduler is replaced in turn, in order, while items run.
ROLLING = plan_of_faults(
    [ordered(n, 1.0 + n / 2, (Deed("ok", 2.0),)) for n in range(60)],
    [Fault(6.0 + 8.0 * number, "drain", f"scheduler{number + 1}", seconds=15.0) for number in range(3)],
    schedulers=3,
    front=True,
    slots=16,
)

#: Submissions of which every second answer is lost, with gateways that are replaced meanwhile.
UNANSWERED = plan_of_faults(
    [Item(n, "queue", 1.0 + n / 4, (Deed("ok", 0.2),)) for n in range(24)],
    [
        Fault(0.9, "weather", what="drop_reply", amount=0.4, seconds=12.0),
        Fault(2.0, "kill", "gateway1", seconds=1.0),
        Fault(4.0, "kill", "gateway2", seconds=1.0),
    ],
    gateways=2,
    slots=16,
)

#: A tailer lives while all files of its stores but the log are put back to what they were before its items failed.
PUT_BACK = plan_of_faults(
    [ordered(n, 2.0 + n / 5, (Deed("raise", 0.1), Deed("ok", 0.1))) for n in range(12)],
    [
        Fault(2.0, "copy", "store", what="queue state delay"),
        Fault(5.0, "restore", "store", what="queue state delay", seconds=0.5),
    ],
    apart=True,
    tailers=1,
    slots=16,
    patience=60.0,
)

#: The copy was made while what failed could not reach the delay service, whose copy knows nothing of it. What came due
#: of it later waits while an operator pauses the function, until just after the stores are back.
PARKED_SINCE = [
    plan_of_faults(
        [ordered(n, 1.5 + n / 20, (Deed("later", 0.1, 4.0), Deed("raise", 6.0), Deed("ok", 0.1))) for n in range(8)],
        [
            both(1.0, "tailer1", "delay", 2.0),
            Fault(2.5, "copy", "store", what="queue state delay"),
            Fault(5.0, "pause", seconds=paused),
            Fault(9.0, "restore", "store", what="queue state delay", seconds=0.5),
        ],
        apart=True,
        tailers=1,
        workers=1,
        slots=16,
    )
    for paused in (4.53, 4.6, 5.0)
]

SCENARIOS: dict[str, list[Plan]] = {
    "a session goes on wherever it is known": [THERE_AND_BACK],
    "one of several schedulers adopts for all": [LEFT_AND_CUT_OFF],
    "what runs at another scheduler is handed out at once": [LEFT_AND_DIED],
    "the next row does not name who was asked": [LEFT_TWICE],
    "a side speaks of what is not its own": [RUNS_AT_BOTH],
    "an item runs again while its side lives": [LEFT_AND_DIED],
    "a row forgets the scheduler of a side": [SIDES_END],
    "what a lost side had is handed out at once": [SIDES_END],
    "a scheduler confirms for the one before it": [LEFT_AND_REPLACED],
    "a scheduler that was left is not listed any more": [LEFT_AND_DIED],
    "a scheduler that is left again is forgotten": [LEFT_AGAIN],
    "a row names the first of its schedulers alone": [WENT_AND_DIED],
    "a taker compares the row as it is by then": [ASKED_TOO_EARLY],
    "a tailer that changed schedulers forgets what it granted": [THERE_AND_BACK],
    "owners go on in a store that was put back": [PUT_BACK],
    "a copy from before starts in a store that was put back": PARKED_SINCE,
    "a submission that comes again is another item": [UNANSWERED],
    "a gateway knows again only what it took itself": [UNANSWERED],
}
