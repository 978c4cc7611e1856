"""Trees of jobs: a client makes them, fills and seals them, an operator pauses, ends and repeats them; and faults at
that moment."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .plan import Deed, Fault, Plan
from .plan_trees import TOLD, BranchItem, InnerAdd, RootCall, TreeAsk, TreeJob, TreePlan

#: The share of worlds with trees, and how many there are.
GROWING, TREES = 0.2, (1, 2)
#: The shapes of them: jobs in the order of their places.
SHAPES = {
    "alone": (TreeJob("a"),),
    "chain": (TreeJob("a"), TreeJob("b", ("a",)), TreeJob("c", ("b",))),
    "apart": (TreeJob("a"), TreeJob("b", ("a",), each=True)),
    "reduced": (TreeJob("a"), TreeJob("b", ("a",), gather=True)),
    "fan": (TreeJob("a"), TreeJob("b", ("a",)), TreeJob("c", ("a",), each=True)),
    "join": (TreeJob("a"), TreeJob("b", ("a",)), TreeJob("c", ("a",), each=True), TreeJob("d", ("b", "c"))),
    "deep": (
        TreeJob("a"),
        TreeJob("b", ("a",), each=True),
        TreeJob("c", ("b",)),
        TreeJob("d", ("a", "c"), gather=True),
        TreeJob("e", ("d",)),
    ),
}
#: Calls that fill a root, the items of one, and the elements of a result that is taken apart, at most.
CALLS, ADDED, WIDTH = (1, 6), (0, 3), 5
#: Items of a tree beyond which no result is taken apart into more than one.
MANY = 40
#: True seconds by which a tree is made, from then on in which its root is filled, and by which the seal and the last
#: call miss each other.
MADE, FILLED, RACE = (0.5, 25.0), 12.0, 0.02
#: The shares of items that have trouble, return too much, return no list, add others, and have a key.
TROUBLED, FAT, ODD, ADDING, KEYED = 0.3, 0.05, 0.05, 0.1, 0.1
#: The shares of trees whose seal races their last call, that are paused, that are ended, whose end is told, and whose
#: failed items are tried again.
RACING, PAUSED, ENDED, TOLD_OF, TRIED_AGAIN = 0.5, 0.3, 0.2, 0.6, 0.5
#: The share of trees whose failed items are redriven while they are open, and how often.
REDRIVEN, REDRIVES = 0.4, (1, 3)
#: Faults more around a tree, at most, in worlds that have others; and the share of them that strike at such a time.
MORE, AT_A_SEAL = 4, 0.4
#: The shares of trees to which nothing is added, and of those whose gathered results hardly fit a payload.
EMPTY, NARROW = 0.1, 0.5
#: Faults that restart nothing, and faults of wires in a blinking world.
_BLINKS = ("reset", "pause", "cut", "both", "freeze")
#: More of the time in which all must be over: of each tree, for its depth.
LONGER = 150.0


def with_trees(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with trees. Not where files are put back (the client that filled a tree has forgotten), where
    every run has a time-out or a thread, where the quotas are of all that runs, nor where all that runs fails for a
    while."""
    random = Random(f"young trees in {plan.seed}")
    unfit = plan.timeout or plan.threads or plan.limits
    if random.random() >= GROWING or unfit or any(fault.kind in ("restore", "outage") for fault in plan.faults):
        return plan
    taken = [*(each.n for each in plan.items), *(each.n for each in plan.schedules), *(each.n for each in plan.orders)]
    trees: list[TreePlan] = []
    for k in range(random.randint(*TREES)):
        trees.append(_tree(random, k, 1 + max(taken)))
        taken += [each.n for each in trees[-1].items]
    faults = [*plan.faults]
    blinks = bool(faults) and all(fault.kind in _BLINKS for fault in faults)
    trees = [_redriven(Random(f"lives in {plan.seed} of {tree.k}"), tree) for tree in trees]
    trees = [replace(tree, narrow=Random(f"room in {plan.seed} of {tree.k}").random() < NARROW) for tree in trees]
    for tree in trees:
        for _ in range(random.randint(0, MORE)):
            at = min(_moment(random, tree), strike)
            faults.append(Fault(at, "reset", "grower", stores) if blinks else _befalls(random, plan, at, stores))
    return replace(
        plan,
        trees=tuple(trees),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        patience=plan.patience + LONGER * len(trees),
    )


# ---- one tree


def _tree(random: Random, k: int, first: int) -> TreePlan:
    jobs = SHAPES[random.choice(sorted(SHAPES))]
    at = random.uniform(*MADE)
    growing = _Growing(random, jobs, first)
    times = sorted(at + random.uniform(0.0, FILLED) for _ in range(random.randint(*CALLS)))
    most = (0, 0) if random.random() < EMPTY else ADDED
    calls = [RootCall(time, tuple(growing.root() for _ in range(random.randint(*most)))) for time in times]
    items = growing.grown()
    told = -1
    if random.random() < TOLD_OF:
        told = first + len(items)
        items.append(BranchItem(told, TOLD, deeds=_deeds(random)))
    seal = times[-1] + random.uniform(0.0, 4.0)
    if random.random() < RACING:
        seal = random.choice(times[-2:]) + random.uniform(-RACE, RACE)
    policy, most_failed = random.choice((("continue", 0), ("continue", 0), ("fail_tree", 0), ("threshold", 2)))
    retry = random.uniform(0.1, 5.0) if random.random() < TRIED_AGAIN else 0.0
    return TreePlan(
        k, at, jobs, tuple(items), tuple(calls), max(at, seal), _asks(random, at), policy, most_failed, retry, told
    )


def _redriven(random: Random, tree: TreePlan) -> TreePlan:
    """The tree, perhaps with redrives; some of them come when it is complete."""
    if random.random() >= REDRIVEN:
        return tree
    times = (tree.at + random.uniform(0.5, 2 * FILLED) for _ in range(random.randint(*REDRIVES)))
    return replace(tree, redrives=tuple(sorted(times)))


class _Growing:
    """Maker of all items that a tree may come to have: those of the root, and the items made of each."""

    def __init__(self, random: Random, jobs: tuple[TreeJob, ...], first: int) -> None:
        self._random = random
        self._tree = TreePlan(0, 0.0, jobs, (), (), 0.0)
        self._next = first
        self._items: list[BranchItem] = []

    def root(self) -> int:
        """Adds an item of the root, and returns its number."""
        return self._item(self._tree.jobs[0].name)

    def _item(self, job: str, origin: int = -1, part: int = 0, *, adds: bool = True) -> int:
        random, tree = self._random, self._tree
        n = self._next
        self._next += 1
        fed = tree.fed_by(job)
        apart = any(each.each for each in fed)
        width = 1
        if apart and len(self._items) < MANY:
            width = random.randint(int(not all(each.each for each in fed)), WIDTH)
        gather = tree.job[job].gather
        item = BranchItem(
            n,
            job,
            origin,
            part,
            _deeds(random),
            width,
            random.random() < FAT and not gather,
            apart and random.random() < ODD,
            key="branch" if origin < 0 and not gather and random.random() < KEYED else "",
        )
        place = len(self._items)
        self._items.append(item)
        for child in fed:
            for index in range(width if child.each else 1):
                self._item(child.name, n, index, adds=adds)
        if adds and random.random() < ADDING and len(self._items) < MANY:
            others = [job, *(each for each in tree.behind(job) if not tree.job[each].gather)]
            inner = [InnerAdd(name, self._item(name, adds=False)) for name in random.choices(others, k=2)]
            self._items[place] = replace(item, adds=tuple(inner), deeds=_adding(random, item))
        return n

    def grown(self) -> list[BranchItem]:
        """All items, with those that gather, each before the items that are made of it."""
        for job in self._tree.jobs:
            if job.gather:
                self._item(job.name, adds=False)
        return sorted(self._items, key=lambda each: each.n)


def _adding(random: Random, item: BranchItem) -> tuple[Deed, ...]:
    """The deeds of an item and three more that succeed, each of which makes the additions first."""
    deeds = (*item.deeds, Deed("ok", random.uniform(0.01, 1.0)), Deed("ok", 0.1), Deed("ok", 0.1))
    return tuple(replace(each, adds=True) for each in deeds)


def _deeds(random: Random) -> tuple[Deed, ...]:
    if random.random() >= TROUBLED:
        return (Deed("ok", _seconds(random)),)
    kind = random.choice(("raise", "raise", "later", "throttled", "crash", "fatal", "fatal"))
    after = random.uniform(0.2, 4.0) if kind in ("later", "throttled") else None
    return (Deed(kind, _seconds(random), after), Deed("ok", _seconds(random)))


def _seconds(random: Random) -> float:
    return math.exp(random.uniform(math.log(0.005), math.log(12.0 if random.random() < 0.1 else 1.0)))


def _asks(random: Random, at: float) -> tuple[TreeAsk, ...]:
    """Requests of an operator: pauses, each with its end, and the end of the tree."""
    asks: list[TreeAsk] = []
    if random.random() < PAUSED:
        begin = at + random.uniform(0.1, 2 * FILLED)
        asks += [TreeAsk(begin, "pause"), TreeAsk(begin + math.exp(random.uniform(-3.0, 3.0)), "resume")]
    if random.random() < ENDED:
        asks.append(TreeAsk(at + random.uniform(0.1, 2 * FILLED), random.choice(("cancel", "cancel", "delete"))))
    return tuple(sorted(asks))


# ---- what befalls it


def _moment(random: Random, tree: TreePlan) -> float:
    """A time in the life of a tree: often just when it is sealed, or somebody asks something of it."""
    if random.random() < AT_A_SEAL:
        return max(tree.at, random.choice((tree.seal, *(ask.at for ask in tree.asks))) - random.uniform(0.0, 0.01))
    return tree.at + random.uniform(0.0, 2.5 * FILLED)


def _befalls(random: Random, plan: Plan, at: float, stores: str) -> Fault:
    """A fault while a tree grows: of its store, or of a process that its items need."""
    seconds = random.choice((0.1, 1.0, 8.0)) * random.uniform(0.5, 2.0)
    if random.random() < 0.6:
        return _of_store(random, at, stores, seconds)
    tailer = f"tailer{random.randint(1, plan.tailers)}" if plan.apart else stores
    match random.choice(("tailer", "worker", "late")):
        case "worker":
            return Fault(at, "kill", f"worker{random.randint(1, plan.workers)}", seconds=seconds)
        case "late" if plan.apart:
            return Fault(at, "zombie", tailer, stores, random.uniform(4.0, 25.0), amount=3.0)
    return Fault(at, "kill", tailer, seconds=seconds)


def _of_store(random: Random, at: float, stores: str, seconds: float) -> Fault:
    """A fault of the store or of the way to it: around a commit of its queue, at best."""
    match random.choice(("point", "point", "dies", "answers", "cut", "writer")):
        case "point":
            what = f"queue: {random.choice(('before', 'after'))} commit"
            return Fault(at, "point", stores, what=what, number=random.choice((1, 2, 3, 5, 9, 15)), seconds=seconds)
        case "answers":
            what = random.choice(("drop_reply", "drop_request", "repeat"))
            return Fault(at, "weather", what=what, amount=0.5, seconds=seconds)
        case "cut":
            return Fault(at, random.choice(("both", "cut")), "grower", stores, seconds)
        case "writer":
            return Fault(at, "writer", stores, what="queue", number=random.randrange(2), seconds=20.0)
    return Fault(at, "kill", stores, seconds=seconds)
