"""What is put into a topic and what is broken around it, from a seed: tailers that share the topic through a group, the
brokers, and every wire between them.
"""

from __future__ import annotations

import random

from .plan import WAYS, WORKERS, Action, Item, Step, arguments
from .verdict import STREAM

TOPIC = GROUP = "faults"
PARTITIONS = 12
TAILERS = ("tailers-1", "tailers-2", "tailers-3")
#: Seconds for which every function fails, and after how many steps.
OUTAGE, OUTAGE_AFTER = 60.0, 40
#: Steps of a whole run: twenty rolling restarts of the tailers, twenty kills of one, ten of a broker, and the rest.
WHOLE = 71

_WORK = (
    # share, function
    (0.73, "work"),
    (0.15, "long"),
    (0.05, "threaded"),
    (0.05, "flaky"),
    (0.015, "throttled"),
    (0.005, "poison"),
)
#: One round, seven times what its family has next. Ten rounds are a whole run.
_ROUND = ("kill", "wire", "broker", "roll", "other", "kill", "roll")


def items(count: int, seed: int) -> list[Item]:
    """So many items: one in two hundred fails for good, one in twenty a few times."""
    chance = random.Random(f"kafka items {seed}")
    names, shares = [name for _, name in _WORK], [share for share, _ in _WORK]
    return [_item(chance.choices(names, shares)[0], chance) for _ in range(count)]


def calm(count: int, seed: int, *, poison: bool) -> list[Item]:
    """So many short items for a time without faults, one in two hundred poisoned if that is asked."""
    chance = random.Random(f"kafka calm {seed}")
    step = 200
    bad = {first + chance.randrange(step) for first in range(0, count, step)} if poison else set()
    return [
        Item(STREAM, "work", {"fails": 1, "delay": 0.3, "dies": True}, dies=True)
        if number in bad
        else Item(STREAM, "work", {"seconds": 0.005})
        for number in range(count)
    ]


def _item(name: str, chance: random.Random) -> Item:
    does = arguments(name, chance, (0.02, 0.3))
    return Item(STREAM, "threaded" if name == "threaded" else "work", does, dies=name == "poison")


def brokers_of(count: int) -> tuple[str, ...]:
    """The parts that are brokers."""
    return tuple(f"kafka-{number + 1}" for number in range(count))


def faults(count: int, seed: int, brokers: int = 1) -> list[Step]:
    """So many faults, family after family in rounds; with `WHOLE` of them the one in which everything fails for a
    minute is among them."""
    chance = random.Random(f"kafka faults {seed}")
    nodes = brokers_of(brokers)
    # Ten rounds meet each way of breaking a broker's wire; what lasts is shorter and longer than the leases.
    lasts = {"half-open": 1.15, "reply-cut": 0.6}
    wires = [Action(way, f"tailers:{chance.choice(nodes)}", lasts.get(way, 0.3)) for way in WAYS]
    wires += [Action(way, f"tailers:{chance.choice(nodes)}", 0.3) for way in ("reset", "half-open", "reply-cut")]
    wires.append(Action("half-open", "tailers:scheduler", 1.15))
    other = [
        Action("kill", "scheduler"),
        Action("kill", chance.choice(WORKERS)),
        Action("stop", chance.choice(TAILERS), 1.15),
        Action("reply-cut", "tailers:store", 0.6),
        Action("kill", "scheduler"),
        Action("kill", "store"),
        Action("kill", "delay"),
        Action("stop", "scheduler", 1.15),
        Action("kill", "executor"),
        Action("reset", "tailers:scheduler", 0.3),
    ]
    turns = {"kill": 0, "wire": 0, "broker": 0, "roll": 0, "other": 0}

    def draw(family: str) -> Action:
        turn = turns[family]
        turns[family] += 1
        if family == "kill":
            return Action("kill", chance.choice(TAILERS))
        if family == "roll":
            return Action("roll", "tailers")
        if family == "broker":
            return Action("kill", nodes[turn % len(nodes)])
        deck = wires if family == "wire" else other
        return deck[turn % len(deck)]

    steps: list[Step] = []
    drawn = 0
    while len(steps) < count:
        if len(steps) == OUTAGE_AFTER:
            steps.append(Step((Action("outage", "", OUTAGE),), 0.5))
            continue
        action = draw(_ROUND[drawn % len(_ROUND)])
        drawn += 1
        steps.append(Step((action,), round(chance.choice((0.1, 0.5, 1.2)) * chance.uniform(0.8, 1.2), 3)))
    return steps
