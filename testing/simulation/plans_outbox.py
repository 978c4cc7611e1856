"""Orders that an application takes in transactions of its own, and faults around the tailer that carries them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import Deed, Fault, Plan, ShopOrder
from .sqlite_shop import SHOP

#: The share of worlds with an application, and its orders.
ORDERING = 0.1
ORDERS = (3, 12)
#: The shares of orders that are rolled back, that fail at first, and that have a key.
ROLLED_BACK, FAILING, KEYED = 0.3, 0.25, 0.3
#: True seconds within which orders come: often several within one look of the relay.
COME = (1.0, 40.0)
#: Faults of the relay and of its database, at most.
MOST = 3


def with_outbox(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with an application. Not where files are put back: the outbox has forgotten by then the rows
    that a queue which is set back would have to get again."""
    random = Random(f"outbox of {plan.seed}")
    if random.random() >= ORDERING or any(fault.kind == "restore" for fault in plan.faults):
        return plan
    taken = {item.n for item in plan.items} | {timed.n for timed in plan.schedules}
    first = max(taken, default=0) + 1
    orders: list[ShopOrder] = []
    at = random.uniform(*COME)
    for number in range(random.randint(*ORDERS)):
        at = random.uniform(*COME) if random.random() < 0.5 else at + 0.01
        orders.append(_order(random, first + number, at))
    relays = [f"tailer{number + 1}" for number in range(plan.tailers)] if plan.apart else [stores]
    faults = [*plan.faults, *(_befalls(random, strike, relays, orders) for _ in range(random.randint(0, MOST)))]
    return replace(plan, orders=tuple(orders), faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _order(random: Random, n: int, at: float) -> ShopOrder:
    deeds = [Deed("raise", random.uniform(0.01, 1.0))] if random.random() < FAILING else []
    deeds.append(Deed("ok", random.uniform(0.01, 2.0)))
    key = f"key{random.randrange(2)}" if random.random() < KEYED else ""
    return ShopOrder(n, at, tuple(deeds), key, random.random() < ROLLED_BACK)


def _befalls(random: Random, strike: float, relays: list[str], orders: list[ShopOrder]) -> Fault:
    """A fault of the relay: it dies around a removal or somewhere in a batch, or cannot reach the application's
    database."""
    relay, at = random.choice(relays), random.uniform(1.0, strike)
    match random.choice(("removal", "removal", "batch", "away")):
        case "removal":
            what = f"{SHOP}: {random.choice(('before', 'after'))} commit"
            return Fault(at, "point", relay, what=what, number=random.randint(1, 2), seconds=10.0)
        case "batch":
            after = random.choice(orders).at + random.uniform(0.0, 3.0)
            return Fault(after, "kill", relay, seconds=random.uniform(0.1, 5.0))
    return Fault(at, random.choice(("busy", "full")), relay, what=SHOP, seconds=random.uniform(0.5, 15.0))
