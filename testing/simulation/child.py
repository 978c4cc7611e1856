"""`python -m tailrace.testing.simulation.child`: tells stories in a process of its own and prints a line of JSON for
each. Its strings hash as the environment says (PYTHONHASHSEED=0), so that a seed tells the same story everywhere."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import sys

import msgspec

from ...foundation.terminal import say
from .plan import Plan
from .plans import plan_of
from .planting import planted
from .recording import WorldRecord, WorldRecording
from .shrink import shrunk
from .story import Story, StoryEnd


class StoryOrder(msgspec.Struct):
    """The order of stories to tell: `seeds`, and of each plan only some faults and items, by index (None: all). `bug`
    is planted meanwhile. `small`: a failing plan is shrunk. `trace`: lines are printed instead of JSON. `finds`: no
    more seeds are told after this many wrong ones (0: all are). `record`: each verdict comes with a record of its
    tailers."""

    seeds: list[int]
    faults: list[int] | None = None
    items: list[int] | None = None
    bug: str = ""
    small: bool = False
    trace: bool = False
    finds: int = 0
    record: bool = False


class Verdict(msgspec.Struct):
    """The verdict on one story. `faults` and `items`: indices of those left in a failing plan after shrinking."""

    seed: int
    hash: str
    wrong: list[str]
    rest: float
    runs: int
    steps: int
    faults: list[int] | None = None
    items: list[int] | None = None
    happened: dict[str, int] = {}
    record: WorldRecord | None = None


def tell(plan: Plan, *, trace: bool = False, record: bool = False) -> StoryEnd:
    """One story of a plan."""
    return Story(plan, keep_trace=trace, recording=WorldRecording() if record else None).tell()


def chosen(plan: Plan, order: StoryOrder) -> Plan:
    """The plan with only the faults and items that an order wants."""
    faults, items = order.faults, order.items
    return dataclasses.replace(
        plan,
        faults=plan.faults if faults is None else tuple(plan.faults[index] for index in faults),
        items=plan.items if items is None else tuple(plan.items[index] for index in items),
    )


def verdict(order: StoryOrder, seed: int) -> Verdict:
    """Tells one seed's story, and shrinks it when it fails."""
    whole = plan_of(seed)
    plan = chosen(whole, order)
    told = tell(plan, trace=order.trace, record=order.record)
    if order.trace:
        for fault in plan.faults:
            say(f"fault {whole.faults.index(fault)}: {fault}")
        for item in plan.items:
            deeds = ", ".join(f"{deed.kind} {deed.seconds:.3f} s" for deed in item.deeds)
            say(f"item {whole.items.index(item)}: {item.source} at {item.at:.3f}: {deeds}")
        for event in told.trace:
            say(str(event))
    found = Verdict(told.seed, told.hash, told.wrong, told.rest, told.runs, told.steps, happened=told.happened)
    found.record = told.record
    if told.wrong and order.small:
        small = shrunk(plan, lambda candidate: bool(tell(candidate).wrong))
        found.faults = [whole.faults.index(fault) for fault in small.faults]
        found.items = [whole.items.index(item) for item in small.items]
    return found


def main() -> None:
    """Runs the process, whose first argument is an order as JSON."""
    order = msgspec.json.decode(sys.argv[1], type=StoryOrder)
    gc.collect()
    gc.freeze()  # the program is not looked through again for each world's garbage: an eighth of the time
    if order.bug:
        importlib.import_module(".bugs", __package__)  # which only a clone has
    wrong = 0
    with planted(order.bug):
        for seed in order.seeds:
            found = verdict(order, seed)
            sys.stdout.write(f"{msgspec.json.encode(found).decode()}\n")
            sys.stdout.flush()
            wrong += bool(found.wrong)
            if order.finds and wrong >= order.finds:
                break


if __name__ == "__main__":
    main()
