"""The plan of a run around streams, from a seed: three tailers that share them, the servers on which the streams rest,
and every wire between them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from .path import STREAM
from .plan import WAYS, WORKERS, Breakage, FaultStep, FedItem, arguments

TAILERS = ("tailers-1", "tailers-2", "tailers-3")
#: Seconds for which every function fails.
OUTAGE = 60.0

_WORK = (
    # share, function
    (0.73, "work"),
    (0.15, "long"),
    (0.05, "threaded"),
    (0.05, "flaky"),
    (0.015, "throttled"),
    (0.005, "poison"),
)
#: Families of faults.
KILL, WIRE, SERVERS, ROLL, OTHER, TWO = "kill", "wire", "servers", "roll", "other", "two"


class Mix(NamedTuple):
    """The mix of a run around one kind of server.

    name          seeds its chance
    round         families in the order in which they take turns, each with its next action
    whole         faults of a whole run
    outage_after  so many faults after the first comes the time in which everything fails
    killers       one item in so many ends its process whenever it runs; 0: none does
    more          other things to break, beside those of every such run
    shuffled      each seed has another order of the actions on wires and of the others, so that short runs differ
    """

    name: str
    round: Sequence[str]
    whole: int
    outage_after: int
    killers: int = 0
    more: Sequence[Breakage] = ()
    shuffled: bool = False


def items(count: int, seed: int, mix: Mix) -> list[FedItem]:
    """Makes so many items: one in two hundred fails for good, one in twenty a few times."""
    chance = random.Random(f"{mix.name} items {seed}")
    names, shares = [name for _, name in _WORK], [share for share, _ in _WORK]
    return [
        FedItem(STREAM, "killer", {}, dies=True)
        if mix.killers and number % mix.killers == mix.killers // 2
        else _item(chance.choices(names, shares)[0], chance)
        for number in range(count)
    ]


def calm(count: int, seed: int, mix: Mix, *, poison: bool) -> list[FedItem]:
    """Makes so many short items for a time without faults, one in two hundred poisoned if that is asked."""
    chance = random.Random(f"{mix.name} calm {seed}")
    step = 200
    bad = {first + chance.randrange(step) for first in range(0, count, step)} if poison else set()
    return [
        FedItem(STREAM, "work", {"fails": 1, "delay": 0.3, "dies": True}, dies=True)
        if number in bad
        else FedItem(STREAM, "work", {"seconds": 0.005})
        for number in range(count)
    ]


def _item(name: str, chance: random.Random) -> FedItem:
    does = arguments(name, chance, (0.02, 0.3))
    return FedItem(STREAM, "threaded" if name == "threaded" else "work", does, dies=name == "poison")


def faults(count: int, seed: int, mix: Mix, servers: Sequence[str]) -> list[FaultStep]:
    """Plans so many faults, family after family in rounds, each server killed in turn."""
    chance = random.Random(f"{mix.name} faults {seed}")
    # Ten rounds meet each way of breaking a server's wire; some last shorter, some longer than the leases.
    lasts = {"half-open": 1.15, "reply-cut": 0.6}
    wires = [Breakage(way, f"tailers:{chance.choice(servers)}", lasts.get(way, 0.3)) for way in WAYS]
    wires += [Breakage(way, f"tailers:{chance.choice(servers)}", 0.3) for way in ("reset", "half-open", "reply-cut")]
    wires.append(Breakage("half-open", "tailers:scheduler", 1.15))
    other = [
        Breakage("kill", "scheduler"),
        Breakage("kill", chance.choice(WORKERS)),
        Breakage("stop", chance.choice(TAILERS), 1.15),
        Breakage("reply-cut", "tailers:store", 0.6),
        Breakage("kill", "scheduler"),
        Breakage("kill", "store"),
        Breakage("kill", "delay"),
        Breakage("stop", "scheduler", 1.15),
        Breakage("kill", "executor"),
        Breakage("reset", "tailers:scheduler", 0.3),
        *mix.more,
    ]
    for deck in (wires, other) if mix.shuffled else ():
        chance.shuffle(deck)
    turns = dict.fromkeys((KILL, WIRE, SERVERS, ROLL, OTHER), 0)

    def draw(family: str) -> Breakage:
        turn = turns[family]
        turns[family] += 1
        if family == KILL:
            return Breakage("kill", chance.choice(TAILERS))
        if family == ROLL:
            return Breakage("roll", "tailers")
        if family == SERVERS:
            return Breakage("kill", servers[turn % len(servers)])
        deck = wires if family == WIRE else other
        return deck[turn % len(deck)]

    steps: list[FaultStep] = []
    drawn = 0
    while len(steps) < count:
        if len(steps) == mix.outage_after:
            steps.append(FaultStep((Breakage("outage", "", OUTAGE),), 0.5))
            continue
        family = mix.round[drawn % len(mix.round)]
        drawn += 1
        if family == TWO:
            # A server, and another fault while it is away; a second fault on that server comes alone.
            first, second = draw(SERVERS), draw(chance.choice((KILL, WIRE, OTHER)))
            actions = (second,) if second.target == first.target else (first, second)
        else:
            actions = (draw(family),)
        steps.append(FaultStep(actions, round(chance.choice((0.1, 0.5, 1.2)) * chance.uniform(0.8, 1.2), 3)))
    return steps
