"""The plan of a run, from a seed: the items put in, and the faults. One seed always gives the same items and the same
order of faults."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from .path import QUEUE, STREAM
from .strangers import METHODS

#: The parts that run as processes of their own. The node of `tailrace up` is the first four in one process.
NODE = ("store", "gateway", "delay", "tailers")
WORKERS = ("worker-1", "worker-2")
#: The server that holds the queue, where there is one.
SERVER = "server"
#: Callers without any right that begin messages and never end them.
STRANGER = "stranger"
#: The wires that can be broken: the dialling part, and the dialled one.
WIRES = (
    "worker-1:scheduler",
    "worker-2:scheduler",
    "tailers:scheduler",
    "tailers:store",
    "tailers:delay",
    "delay:store",
    "gateway:store",
    "client:gateway",
)
WAYS = ("delay", "reset", "half-open", "truncation", "reply-cut", "refused")


class FedItem(NamedTuple):
    """One item to put in. `delay`: seconds from its submission to its due time; `tenant`: its tenant (both for the
    queue only)."""

    source: str
    function: str
    arguments: dict[str, Any]
    dies: bool = False
    delay: float = 0.0
    tenant: str = ""


class FaultStep(NamedTuple):
    """One fault to do: one or two actions, the seconds they last at most, and a pause before the next."""

    actions: tuple[Breakage, ...]
    pause: float

    @property
    def kind(self) -> str:
        """Name of the step in the figures: the action's, or `two at once`."""
        return self.actions[0].kind if len(self.actions) == 1 else TWO


class Breakage(NamedTuple):
    """One action that breaks something. `length`: its duration as a share of the longest lease; of an outage in
    seconds."""

    # kill | stop | term | roll | exit | lock | memory | disk | gone | stranger | outage | lose | one of (HOST_)WAYS
    what: str
    target: str  # a part, `node`, `executor`, a wire, a host
    length: float = 0.0

    @property
    def kind(self) -> str:
        """Name of the action, such as `kill scheduler` or `half-open tailers:store`; numbers of parts are left out."""
        return re.sub(r"-\d+", "", f"{self.what} {self.target}").strip()


TWO = "two at once"

_WORK = (
    # share, function
    (0.62, "work"),
    (0.08, "long"),
    (0.06, "threaded"),
    (0.02, "isolated"),
    (0.12, "flaky"),
    (0.04, "throttled"),
    (0.03, "poison"),
    (0.03, "delayed"),
)
#: One item in so many is of a function of which one in so many ends its process whenever it runs. Odd, both: half of
#: them are for each source.
KILLERS, KILLS = 299, 5


def items(count: int, seed: int) -> list[FedItem]:
    """Makes so many items, half of them for the queue and half for the stream, in random order."""
    chance = random.Random(f"items {seed}")
    names, shares = [name for _, name in _WORK], [share for share, _ in _WORK]
    made: list[FedItem] = []
    for number in range(count):
        source = QUEUE if number % 2 else STREAM
        name = chance.choices(names, shares)[0]
        if number % KILLERS == 0:
            name = "killer" if number // KILLERS % KILLS == KILLS // 2 else "spared"
        made.append(_item(source, name, chance))
    return made


def with_children(items: Sequence[FedItem]) -> list[FedItem]:
    """The items, of which every second one in a thread starts a process and waits for it."""
    turn = itertools.cycle((True, False))
    return [item._replace(function="parent") if item.function == "threaded" and next(turn) else item for item in items]


def _item(source: str, name: str, chance: random.Random) -> FedItem:
    def seconds(least: float, most: float) -> float:
        return round(chance.uniform(least, most), 3)

    if name == "delayed" and source == QUEUE:
        return FedItem(source, "work", {"seconds": seconds(0.0, 0.2)}, delay=seconds(0.5, 4.0))
    if name == "killer":
        return FedItem(source, name, {}, dies=True)
    if name == "spared":
        return FedItem(source, "killer", {"spares": True})
    return FedItem(
        source,
        name if name in ("threaded", "isolated") else "work",
        arguments(name, chance, (0.05, 0.4)),
        dies=name == "poison",
    )


def arguments(name: str, chance: random.Random, usual: tuple[float, float]) -> dict[str, Any]:
    """The arguments of an item of a kind. `usual`: seconds that one runs, least and most, unless it is a long one."""

    def seconds(least: float, most: float) -> float:
        return round(chance.uniform(least, most), 3)

    found: dict[str, Any] = {"seconds": seconds(0.8, 2.5) if name == "long" else seconds(*usual)}
    if name == "flaky":
        found |= {"fails": chance.choice((1, 1, 2)), "delay": seconds(0.3, 2.0)}
    elif name == "throttled":
        found["throttles"] = True
    elif name == "poison":
        found |= {"fails": chance.choice((0, 1)), "dies": True}
    return found


def families() -> dict[str, list[Breakage]]:
    """Every action that breaks something, by family."""
    parts = (*NODE, "node", "scheduler", *WORKERS)
    return {
        "kill": [Breakage("kill", part) for part in (*parts, "executor", "executor", "guard")],
        "stop": [
            Breakage("stop", part, 1.15)
            for part in ("store", "tailers", "node", "scheduler", *WORKERS, "supervisor", "executor", "guard")
        ],
        "term": [Breakage("term", part) for part in parts],
        "user": [Breakage("exit", "", 0.0), Breakage("lock", "", 1.15), Breakage("memory", "", 0.0)],
        "disk": [Breakage("disk", "store", 0.4), Breakage("gone", "store")],
        STRANGER: [Breakage(STRANGER, part) for part in METHODS],
        SERVER: [Breakage("kill", SERVER)],
        "wire": [
            Breakage(way, wire, length)
            for wire in WIRES
            for way in WAYS
            for length in ((0.3, 1.15) if way in ("half-open", "reply-cut") else (0.3,))
        ],
    }


#: The order in which families take turns: a run of eight faults has met each.
TURNS = (
    *("kill", "wire", "stop", "two", "user", STRANGER, "term", "disk"),
    *("kill", "wire", "stop", "two", "wire", "kill", "wire"),
)
#: Every third fault is the server's, where there is one.
_TURNS_WITH_SERVER = tuple(turn for number, each in enumerate(TURNS) for turn in (each, SERVER)[: 1 + number % 2])


def faults(count: int, seed: int, without: Collection[str] = (), *, server: bool = False) -> list[FaultStep]:
    """Plans so many faults: the families in turns, each family's actions in a random order until all were done.

    `without`: words of actions that cannot be done here; `server`: the queue rests on one, which is killed too.
    """
    turns = _TURNS_WITH_SERVER if server else TURNS
    return dealt(count, seed, families(), turns, without, ("kill", "stop", "wire"))


def dealt(
    count: int,
    seed: int,
    known: Mapping[str, Sequence[Breakage]],
    turns: Sequence[str],
    without: Collection[str],
    seconds: Sequence[str],
) -> list[FaultStep]:
    """Deals so many faults from these families, in these turns. `seconds`: the families of the second one of two at
    once."""
    chance = random.Random(f"faults {seed}")
    known = {name: [action for action in actions if action.what not in without] for name, actions in known.items()}
    known = {name: actions for name, actions in known.items() if actions}
    decks: dict[str, list[Breakage]] = {name: [] for name in known}

    def draw(family: str) -> Breakage:
        deck = decks[family]
        if not deck:
            deck.extend(chance.sample(known[family], len(known[family])))
        return deck.pop()

    turns = [turn for turn in turns if turn == "two" or turn in known]
    steps: list[FaultStep] = []
    for number in range(count):
        turn = turns[number % len(turns)]
        if turn == "two":
            first = draw("kill")
            second = draw(chance.choice([name for name in seconds if name in known]))
            actions = (first,) if second.target == first.target else (first, second)
        else:
            actions = (draw(turn),)
        # A part of the pauses is shorter than a lease, so that a fault meets the recovery from the one before.
        steps.append(FaultStep(actions, round(chance.choice((0.1, 0.5, 1.2)) * chance.uniform(0.8, 1.2), 3)))
    return steps


def restarts(count: int, seed: int) -> list[FaultStep]:
    """Plans so many rolling restarts: each part in turn, again and again."""
    chance = random.Random(f"restarts {seed}")
    parts = ("worker-1", "scheduler", "tailers", "worker-2", "delay", "gateway", "store")
    return [
        FaultStep((Breakage("term", parts[number % len(parts)]),), round(chance.uniform(0.1, 0.4), 3))
        for number in range(count)
    ]
