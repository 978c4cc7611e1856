"""Worlds with trees of jobs: each made for a mistake of bugs/trees.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .plan import Deed, Fault, Plan
from .plan_trees import TOLD, BranchItem, RootCall, TreeAsk, TreePlan
from .plans_trees import SHAPES
from .scenarios import plan_of_faults

_SOON = (Deed("ok", 0.1),)


class _Nursery:
    """Maker of all items that a tree may come to have, where all items of a job do the same."""

    def __init__(self, shape: str, width: int, deeds: dict[str, tuple[Deed, ...]]) -> None:
        self.tree = TreePlan(0, 1.0, SHAPES[shape], (), (), 4.0)
        self.items: list[BranchItem] = []
        self._width = width
        self._deeds = deeds

    def item(self, job: str, origin: int = -1, part: int = 0) -> int:
        """Adds an item and all items that may be made of it, and returns its number."""
        n, fed = len(self.items), self.tree.fed_by(job)
        width = self._width if any(each.each for each in fed) else 1
        self.items.append(BranchItem(n, job, origin, part, self._deeds.get(job, _SOON), width))
        for child in fed:
            for index in range(width if child.each else 1):
                self.item(child.name, n, index)
        return n


def tree(
    shape: str, roots: int, width: int = 2, deeds: dict[str, tuple[Deed, ...]] | None = None, **options: Any
) -> TreePlan:
    """A tree that one call fills with `roots` items. Its end is told."""
    nursery = _Nursery(shape, width, deeds or {})
    call = RootCall(1.5, tuple(nursery.item("a") for _ in range(roots)))
    for each in nursery.tree.jobs:
        if each.gather:
            nursery.item(each.name)
    told = nursery.item(TOLD)
    known: dict[str, Any] = {"items": tuple(nursery.items), "calls": (call,), "told": told}
    return replace(nursery.tree, **(known | options))


def _fat(grown: TreePlan) -> TreePlan:
    """The tree, whose first item of the root returns too much for any payload."""
    return replace(grown, items=(replace(grown.items[0], fat=True), *grown.items[1:]))


def _world(*trees: TreePlan, faults: list[Fault] | None = None, **options: Any) -> Plan:
    return plan_of_faults([], faults or [], **({"trees": trees, "slots": 16, "calm": 20.0} | options))


#: Nothing goes wrong.
CHAIN, DEEP = _world(tree("chain", 3)), _world(tree("deep", 3, 5))

#: The root is filled once more when the tree is sealed; it takes its time.
_LATE = tree("alone", 2, deeds={"a": (Deed("ok", 6.0),)})
LATE = _world(
    replace(_LATE, items=(*_LATE.items, BranchItem(99, "a")), calls=(*_LATE.calls, RootCall(4.5, (99,))), seal=4.0),
    calm=30.0,
)

#: Half of all answers are lost while the root is filled.
UNHEARD = _world(
    tree("chain", 2, calls=tuple(RootCall(1.5, (n,)) for n in (0, 3))),
    faults=[Fault(1.4, "weather", what="drop_reply", amount=0.6, seconds=3.0)],
)

#: Two items take equally long.
TOGETHER = _world(tree("alone", 2, deeds={"a": (Deed("ok", 5.0),)}))

#: A tailer dies as its settlement is on its way, which lands when the items run again.
OLDER_FENCE = _world(
    tree("chain", 3, deeds={"a": (Deed("ok", 8.0), Deed("ok", 30.0), Deed("ok", 0.1))}),
    faults=[Fault(9.0, "zombie", "tailer1", "store", 45.0, amount=2.0), Fault(10.0, "kill", "tailer1", seconds=1.0)],
    apart=True,
    tailers=1,
    calm=90.0,
)

#: One item of a root returns too much.
FAT = _world(_fat(tree("chain", 3)))

#: A tree is cancelled while it runs, and nobody comes back to say how that ended.
NOBODY = _world(
    tree("chain", 3, deeds={"a": (Deed("ok", 60.0),)}, asks=(TreeAsk(6.0, "cancel"),)),
    faults=[Fault(5.9, "kill", "tailer1", seconds=70.0), Fault(5.9, "kill", "scheduler1", seconds=70.0)],
    apart=True,
    tailers=1,
    calm=90.0,
)

#: A tree that one failure ends.
STRICT = _world(tree("chain", 3, deeds={"a": (Deed("fatal", 0.1),)}, policy="fail_tree"))

#: The store dies after each commit in turn when a result is taken apart, and when a tree without an item is sealed.
TAKEN_APART = [
    _world(
        tree("apart", 1, 9, {"a": (Deed("ok", 4.0),)}),
        faults=[Fault(4.9, "point", "node", what="queue: after commit", number=number, seconds=1.0)],
        calm=30.0,
    )
    for number in range(1, 5)
]
EMPTY = [
    _world(
        tree("chain", 0),
        faults=[Fault(3.9, "point", "node", what="queue: after commit", number=number, seconds=1.0)],
        calm=30.0,
    )
    for number in range(1, 3)
]

#: A tree is paused and goes on.
PAUSED = _world(
    tree(
        "chain",
        3,
        deeds={"a": (Deed("ok", 3.0),)},
        asks=(TreeAsk(2.5, "pause"), TreeAsk(9.0, "resume")),
    )
)

#: A gathering item fails after items that failed, and one alone; both trees are tried again.
GATHERED = _world(
    tree("reduced", 3, deeds={"a": (Deed("fatal", 0.1), *_SOON), "b": (Deed("fatal", 0.1), *_SOON)}, retry=1.0)
)
GATHERED_ALONE = _world(tree("reduced", 3, deeds={"b": (Deed("fatal", 0.1), *_SOON)}, retry=1.0))

#: More is gathered than fits a payload; the item is tried again in its tree, and in another one.
NARROW = _world(
    tree("reduced", 9, deeds={"a": (Deed("ok", 1.0),), "b": (Deed("raise", 0.1), *_SOON)}, narrow=True), calm=30.0
)
NARROW_AGAIN = _world(tree("reduced", 9, deeds={"b": (Deed("fatal", 0.1), *_SOON)}, narrow=True, retry=1.0))

#: All items of two jobs fail, and are tried again by calls that come twice.
REPEATED = [
    _world(
        tree("chain", 9, deeds={"a": (Deed("ok", 1.0),), "b": (Deed("fatal", 0.1), *_SOON)}, retry=1.0 + later / 10),
        faults=[Fault(1.0, "weather", what="repeat", amount=0.9, seconds=40.0)],
        seed=2,
    )
    for later in range(3)
]

#: Items fail, and have other lives: while their job is open, and when it is complete.
LIVES = _world(tree("chain", 3, deeds={"a": (Deed("fatal", 0.1), *_SOON)}, redrives=(2.5, 3.0, 9.0), seal=6.0))
OVER = _world(tree("alone", 3, deeds={"a": (Deed("fatal", 0.1), *_SOON)}, redrives=(9.0,)))

#: A tailer dies as its settlement is on its way, which lands when the items have another life.
FORMER = _world(
    tree(
        "chain",
        3,
        deeds={"a": (Deed("ok", 8.0), Deed("fatal", 0.1), Deed("ok", 30.0), Deed("ok", 0.1))},
        redrives=tuple(float(second) for second in range(12, 50, 2)),
        seal=80.0,
    ),
    faults=[Fault(9.0, "zombie", "tailer1", "store", 45.0, amount=2.0), Fault(10.0, "kill", "tailer1", seconds=1.0)],
    apart=True,
    tailers=1,
    calm=120.0,
)

SCENARIOS: dict[str, list[Plan]] = {
    "an addition knows its tree from before the seal": [LATE],
    "an addition that is made again adds again": [UNHEARD],
    "two last items that end at once each see the other one pend": [TOGETHER],
    "a settlement under an older fence ends its item": [OLDER_FENCE],
    "items are made of a result after its transaction": [CHAIN],
    "a result for which there is no room becomes an item": [FAT],
    "a result for which there is no room fails what is settled with it": [FAT],
    "an item of a complete job has another life": [OVER],
    "an item that has another life counts as failed still": [LIVES],
    "the end of a former life ends its item": [FORMER],
    "an item that is cancelled with its lease pends for ever": [NOBODY],
    "a failed item does not end its tree": [STRICT],
    "what is due of trees is not read when their queue is opened": EMPTY,
    "a job does not hear that its parents are complete": [CHAIN],
    "a job waits for all of its parents but one": [DEEP],
    "a result that is taken apart in steps loses all but the first": [DEEP],
    "a result that is taken apart in steps begins anew when its store does": TAKEN_APART,
    "the end of each job is told as that of its tree": [CHAIN],
    "items of a paused tree are handed out": [PAUSED],
    "what waited while its tree was paused is not due again": [PAUSED],
    "another try that is asked for twice is made by two": REPEATED,
    "a gathering item that failed alone is not tried again": [GATHERED_ALONE],
    "a gathering item is tried again beside those that it gathers": [GATHERED],
    "a gathering item that is tried again reads the results of its own tree": [NARROW_AGAIN],
    "a page of gathered results begins after one that was not given": [NARROW],
}
