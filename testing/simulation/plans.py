"""Plans made from seeds: how many hosts there are, what the items do, and which faults come when."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .parts import QUEUE, STREAM
from .plan import DETACH_AFTER, Deed, Fault, Item, Plan
from .plans_blinks import blinking
from .plans_blocks import blocking
from .plans_files import with_files
from .plans_limits import limited
from .plans_outbox import with_outbox
from .plans_parents import parental
from .plans_redrives import redriven
from .plans_rough import rough
from .plans_schedules import scheduled
from .plans_several import several
from .plans_spool import spooling
from .plans_threads import threaded
from .plans_timeouts import timed_out
from .plans_trees import with_trees

#: Items of a story: the least and the most. Faults at most.
ITEMS = (12, 36)
FAULTS = 7
#: True seconds within which items are brought, faults begin and are over.
BRING, STRIKE, CALM = 40.0, 45.0, 75.0
#: True seconds within which everything is over once the faults are; three times that where items wait for one another:
#: in order, or for the only place there is, when they run long.
PATIENCE = 360.0
#: The shares of worlds whose stream is in order, and in which an operator pauses the function; of the stream's items
#: that wait for several rungs of the ladder.
ORDERED, PAUSED, LONG_WAIT = 0.25, 0.15, 0.03
#: The share of worlds whose stream's items have priorities of their own, and of those items which expire.
URGENT, EXPIRING = 0.25, 0.3
#: The share of worlds without an order whose items are passed while they run, after so many seconds: the least and the
#: most; and of those items that run for a while.
DETACHING, DETACHED_AFTER, LONG = 0.4, (0.5, 8.0), 0.4
#: The share of worlds whose stores are put back from a backup.
PUT_BACK = 0.1
#: Rate by which a clock may drift.
RHO = 0.01
#: How far the wall clock of the stores may jump ahead, seconds: beyond every lease; and back, and that of any other
#: host: a due time may be another host's, and what is due later must still end in time.
AHEAD, BACK = 3600.0, 15.0
#: Seconds within which the stores' process should not die after such a jump.
UNSEEN = 10.0
#: Moments around durable writes at which a host may die.
POINTS = [f"{file}: {when} commit" for file in ("queue", "log", "delay", "state") for when in ("before", "after")]


def plan_of(seed: int) -> Plan:
    """Makes the plan of a seed."""
    random = Random(f"plan {seed}")
    workers = random.choice((1, 2, 2, 3))
    schedulers = random.choice((1, 1, 1, 2))
    apart = random.random() < 0.4
    names = ["store", "delay", "tailer1", "tailer2", "client"] if apart else ["node", "client"]
    names += [f"scheduler{number + 1}" for number in range(schedulers)]
    names += [f"worker{number + 1}" for number in range(workers)]
    items = tuple(_item(random, n) for n in range(random.randint(*ITEMS)))
    faults = sorted((_fault(random, names) for _ in range(random.randint(0, FAULTS))), key=lambda each: each.at)
    more = Random(f"more of {seed}")  # drawn apart, so that a seed's other choices do not depend on it
    order = more.choice(("key", "key", "partition")) if more.random() < ORDERED else "none"
    if more.random() < PAUSED:
        faults.append(Fault(more.uniform(1.0, STRIKE), "pause", seconds=_log_uniform(more, 1.0, 40.0)))
    with_more = [_with_more(more, item, order) for item in items]
    urgency = Random(f"urgency of {seed}")
    urgent = order != "partition" and urgency.random() < URGENT
    lasting = Random(f"lasting of {seed}")
    detaching = order == "none" and lasting.random() < DETACHING
    detach_after = _log_uniform(lasting, *DETACHED_AFTER) if detaching else DETACH_AFTER
    if detaching:
        with_more = [_long(lasting, item) for item in with_more]
    executors, slots = random.choice((1, 1, 2)), random.choice((1, 4, 16))
    one = workers * executors * slots == 1
    plan = Plan(
        seed=seed,
        items=tuple(_urgent(urgency, item) if urgent else item for item in with_more),
        detach_after=detach_after,
        faults=tuple(_seen(faults, names[0])),
        order=order,
        urgent=urgent,
        patience=PATIENCE if order == "none" and not (detaching and one) else 3 * PATIENCE,
        apart=apart,
        schedulers=schedulers,
        workers=workers,
        executors=executors,
        slots=slots,
        rates={name: _rate(random) for name in names},
        calm=CALM,
    )
    plan = rough(_put_back(scheduled(several(plan, STRIKE, _rate)), names[0]), STRIKE, names[0])
    plan = with_files(spooling(threaded(timed_out(plan)), STRIKE, names[0]), STRIKE, names[0])
    plan = with_outbox(redriven(plan, names[0]), STRIKE, names[0])
    plan = limited(blocking(parental(blinking(plan, STRIKE, names[0]))), STRIKE)
    return with_trees(plan, STRIKE, names[0])


def _put_back(plan: Plan, stores: str) -> Plan:
    """The plan, perhaps with a queue, or all files but the log, put back to an older copy. The stores' clock does not
    go back as well: then nothing could keep fences from it."""
    random = Random(f"put back {plan.seed}")
    if random.random() >= PUT_BACK:
        return plan
    what = random.choice(("queue", "queue state delay"))
    copied = random.uniform(8.0, 25.0)
    back = copied + random.uniform(0.5, STRIKE - copied)
    faults = [
        replace(each, amount=abs(each.amount)) if each.kind == "jump" and each.host == stores else each
        for each in plan.faults
    ]
    faults.append(Fault(copied, "copy", stores, what=what))
    faults.append(Fault(back, "restore", stores, what=what, seconds=_log_uniform(random, 0.1, 10.0)))
    return replace(plan, faults=tuple(_seen(sorted(faults, key=lambda each: each.at), stores)))


def _with_more(random: Random, item: Item, order: str) -> Item:
    """The item, perhaps with a key, and perhaps with a wait of several hops before it."""
    if item.source != STREAM:
        return item
    if order != "none" and random.random() < 0.7:
        item = replace(item, key=f"key{random.randrange(3)}")
    if order == "none" and random.random() < LONG_WAIT:
        item = replace(item, deeds=(Deed("later", 0.1, random.uniform(35.0, 130.0)), *item.deeds))
    return item


def _long(random: Random, item: Item) -> Item:
    """The item, perhaps one that runs for a while when it runs first."""
    if item.source != STREAM or random.random() >= LONG:
        return item
    first, rest = item.deed(0), item.deeds[1:]
    return replace(item, deeds=(replace(first, seconds=_log_uniform(random, 3.0, 60.0)), *rest))


def _urgent(random: Random, item: Item) -> Item:
    """The item, if of the stream with a priority, and perhaps a deadline."""
    if item.source != STREAM:
        return item
    priority = random.choice(("interactive", "user_visible", "eventual", "reporting"))
    expires = round(_log_uniform(random, 1.0, 60.0), 3) if random.random() < EXPIRING else 0.0
    return replace(item, priority=priority, expires=expires)


def _seen(faults: list[Fault], stores: str) -> list[Fault]:
    """The faults, without jumps of the stores' clock that nobody could see: a process notices one at its next claim or
    renewal, not when it dies before."""
    return [
        replace(each, amount=min(each.amount, BACK))
        if each.kind == "jump"
        and each.host == stores
        and any(other.host == stores and each.at < other.at < each.at + UNSEEN for other in faults)
        else each
        for each in faults
    ]


def _rate(random: Random) -> float:
    if random.random() < 0.3:
        return random.choice((1 - RHO, 1 + RHO))
    return random.uniform(1 - RHO, 1 + RHO)


def _item(random: Random, n: int) -> Item:
    source = QUEUE if random.random() < 0.5 else STREAM
    count = random.choices((0, 1, 2, 3, 7), (6, 5, 2, 1, 1))[0]
    deeds = [_deed(random, last=index == count - 1) for index in range(count)]
    if random.random() < 0.5:
        deeds.append(Deed("ok", _seconds(random)))
    delay = _log_uniform(random, 0.5, 20.0) if source == QUEUE and random.random() < 0.2 else 0.0
    key = f"key{random.randrange(3)}" if random.random() < 0.1 else ""
    return Item(n, source, random.uniform(0.5, BRING), tuple(deeds), delay, key)


def _deed(random: Random, *, last: bool) -> Deed:
    kinds = ["ok", "raise", "raise", "later", "throttled", "crash"] + (["fatal"] if last else [])
    kind = random.choice(kinds)
    after = None
    if kind in ("later", "throttled"):
        after = _log_uniform(random, 0.2, 15.0)
    return Deed(kind, _seconds(random), after, stubborn=random.random() < 0.3)


def _seconds(random: Random) -> float:
    return _log_uniform(random, 0.005, 40.0 if random.random() < 0.2 else 2.0)


def _log_uniform(random: Random, least: float, most: float) -> float:
    return math.exp(random.uniform(math.log(least), math.log(most)))


_KINDS = (*("kill", "kill", "point", "freeze", "executors", "cut", "both", "reset", "weather", "jump", "drain"),)
_WEATHER = (("drop_request", 0.2), ("drop_reply", 0.2), ("repeat", 0.2), ("late", 0.3), ("reset", 0.02))


def _fault(random: Random, names: list[str]) -> Fault:
    victims = [name for name in names if name != "client"]
    workers = [name for name in names if name.startswith("worker")]
    fault = Fault(random.uniform(1.0, STRIKE), random.choice(_KINDS), random.choice(victims))
    fault = replace(fault, seconds=_log_uniform(random, 0.1, 60.0))
    match fault.kind:
        case "kill":
            orphans = _log_uniform(random, 0.1, 30.0) if random.random() < 0.3 else 0.0
            fault = replace(fault, amount=orphans, number=int(random.random() < 0.3))
        case "point":
            fault = replace(
                fault, host=names[0], what=random.choice(POINTS), number=random.randint(1, 12), seconds=10.0
            )
        case "executors":
            what = random.choice(("kill", "freeze", "all", "stall"))
            fault = replace(fault, host=random.choice(workers), what=what, number=random.randrange(4))
        case "cut" | "both" | "reset":
            one, other = random.sample(names, 2)
            if random.random() < 0.8:
                near = [name for name in names if name in ("node", "tailer1", "tailer2")]
                one, other = random.sample([random.choice((*near, *workers)), "scheduler1"], 2)
            fault = replace(fault, host=one, other=other)
        case "weather":
            what, amount = random.choice(_WEATHER)
            fault = replace(fault, host="", what=what, amount=amount)
        case "jump":
            ahead = AHEAD if fault.host == names[0] else BACK
            jump = _log_uniform(random, 0.5, ahead) if random.random() < 0.5 else -_log_uniform(random, 0.5, BACK)
            fault = replace(fault, amount=jump, seconds=0.0)
        case "drain":
            fault = replace(fault, seconds=15.0)
    return fault
